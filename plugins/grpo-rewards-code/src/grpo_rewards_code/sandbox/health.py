"""What `grpoctl plugins doctor` says: how isolated programs would run on this machine, and how it could be better."""

from __future__ import annotations

from collections.abc import Iterator

from grpo_rewards_code.executor.types import ExecutorError
from grpo_rewards_code.sandbox.choose import HOW_TO_GET_BUBBLEWRAP, choose, describe

__all__ = ["health"]


def health() -> Iterator[str]:
    """Lines for people; runs a small program in a sandbox."""
    try:
        plan = choose()
    except ExecutorError as error:
        yield str(error)
        return
    yield f"programs run here under {describe(plan)}"
    if plan.level != "bubblewrap":
        yield f"to isolate them more: {HOW_TO_GET_BUBBLEWRAP}"
