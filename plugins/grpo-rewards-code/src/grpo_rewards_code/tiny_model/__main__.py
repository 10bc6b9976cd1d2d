"""`python -m grpo_rewards_code.tiny_model OUT`: make the tiny model, in some minutes on two CPU cores."""

from __future__ import annotations

from collections.abc import Sequence

from grpo_rewards_code.tiny_model.lesson import MULTITASK
from grpo_rewards_math.tiny_model.command import make


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the model that the recipe `multitask-math-code` trains."""
    make(MULTITASK, arguments)


if __name__ == "__main__":
    main()
