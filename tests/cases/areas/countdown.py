"""Cases of the area `countdown`: one completion against given numbers and a target."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.cases.decode import completion_text, decoded
from tests.cases.expect import difference
from tests.cases.scored import group_of, score_one

__all__ = ["check"]


def check(case: dict[str, Any]) -> str | None:
    """None when the score is right and nothing was executed, else what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder, "canary")
        text = completion_text(case).replace("{CANARY}", str(canary))
        group = group_of([text], {"nums": decoded(case["nums"]), "target": decoded(case["target"])})
        outcome = score_one(case["reward"], group, limit_s=case.get("time_limit_s"))
        if canary.exists():
            return "the answer was executed"
    return difference(outcome, case)
