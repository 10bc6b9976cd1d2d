"""Cases of the area `format`: one completion, and the prompt's end where it matters."""

from __future__ import annotations

from typing import Any

from tests.cases.decode import completion_text
from tests.cases.expect import difference
from tests.cases.scored import group_of, score_one

__all__ = ["check"]


def check(case: dict[str, Any]) -> str | None:
    """None when the score is right, else what is wrong with it."""
    group = group_of([completion_text(case)], prompt=case.get("prompt_tail", ""))
    return difference(score_one(case["reward"], group, limit_s=case.get("time_limit_s")), case)
