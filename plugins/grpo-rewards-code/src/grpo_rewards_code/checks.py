"""Whether the result of a test's run is what its check asks for.

Place in the flow: job → run results → **comparison** → score.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from grpo_rewards_code.compare import Tolerance, same_text, same_value
from grpo_rewards_code.executor.types import RunResult
from grpo_rewards_code.executor.values import Opaque
from grpo_rewards_code.problem.types import Output, Test

__all__ = ["has_data", "holds"]


def holds(test: Test, result: RunResult, tolerance: Tolerance) -> bool:
    """Whether a test passes. A run that did not end well makes it fail, whatever it printed or returned."""
    if result.status != "ok":
        return False
    check = test.check
    if isinstance(check, Output):
        return any(same_text(result.stdout, text, tolerance, unordered=check.unordered) for text in check.any_of)
    return any(
        same_value(result.value, expected, tolerance, style=check.style, unordered=check.unordered)
        for expected in check.any_of
    )


def has_data(value: Any) -> bool:
    """Whether all of a value came out as data."""
    match value:
        case list() | tuple() | set() | frozenset() | deque():
            return all(map(has_data, value))
        case dict():
            return all(map(has_data, value.keys())) and all(map(has_data, value.values()))
        case Opaque():
            return False
    return True
