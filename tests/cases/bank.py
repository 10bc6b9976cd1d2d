"""Runs cases: each through the module of its area, `areas/<area>.py`, which has `check(case) -> str | None`.

`check` gives None when the outcome is right, else what is wrong with it; it raises `NotYetError` when the case needs a
part that does not exist.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["BANK", "NotYetError", "Verdict", "judge", "read_cases"]

BANK = Path(__file__).with_name("rewards.jsonl")


class NotYetError(Exception):
    """The case needs a part that does not exist; carries its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a case."""

    id: str
    area: str
    status: Literal["passed", "failed", "not yet"]
    message: str = ""
    """What is wrong, or the name of the part that does not exist."""


def read_cases(path: Path) -> list[dict[str, Any]]:
    """All cases of a file, one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def judge(case: Mapping[str, Any]) -> Verdict:
    """Run one case. An exception that is not `NotYetError` is a failed case, not the end of the bank."""
    name = {"id": case["id"], "area": case["area"]}
    module = f"{__name__.rpartition('.')[0]}.areas.{case['area']}"
    if importlib.util.find_spec(module) is None:
        return Verdict(**name, status="not yet", message=f"the area {case['area']}")
    try:
        wrong = importlib.import_module(module).check(dict(case))
    except NotYetError as missing:
        return Verdict(**name, status="not yet", message=str(missing))
    except Exception as error:  # noqa: BLE001 - whatever a case does to the program is this case's result
        return Verdict(**name, status="failed", message=f"crash: {type(error).__name__}: {error}")
    return Verdict(**name, status="failed" if wrong else "passed", message=wrong or "")
