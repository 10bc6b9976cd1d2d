"""`python -m grpo_rewards_math.tiny_model OUT`: make the tiny model, in a few minutes on two CPU cores."""

from __future__ import annotations

from collections.abc import Sequence

from grpo_rewards_math.tiny_model.command import make
from grpo_rewards_math.tiny_model.countdown import COUNTDOWN


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the model that the recipe `countdown-tiny` trains."""
    make(COUNTDOWN, arguments)


if __name__ == "__main__":
    main()
