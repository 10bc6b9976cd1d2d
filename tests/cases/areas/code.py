"""Cases of the area `code`: programs against tests, with what they may not reach standing by.

Dangerous programs run as all others do: what keeps them is the reward's own sandbox, with its default limits.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpo_core.errors import GrpoError
from tests.cases.decode import completion_text
from tests.cases.expect import ClearError, difference
from tests.cases.scored import group_of, plain, plan_reward, score
from tests.cases.surroundings import Surroundings, surroundings

__all__ = ["check"]

_ROOT = Path(__file__).parents[3]
_CHILD_LIMIT_S = 120
_RIGHT = "```python\na, b = map(int, input().split())\nprint(a + b)\n```"
_RIGHT_TESTS = {"kind": "stdin", "cases": [{"input": "3 4\n", "output": "7\n"}]}


def check(case: dict[str, Any]) -> str | None:
    """None when the scores are right and in time and nothing else happened; else what is wrong."""
    setup = case.get("setup", "")
    with surroundings() as around:
        columns = around.fill(case["columns"] if "columns" in case else {"tests": case["tests"]})
        if "EAGAIN" in setup:
            outcome = _without_processes(case, columns, around)
        else:
            with _environment(_variables(setup)):
                outcome = _outcome(case, columns, around, _options(setup, around))
        wrong = difference(outcome, case)
        return wrong or around.wrong_afterwards(case.get("side_effect_check", ""), lambda: _next(case))


def _outcome(
    case: Mapping[str, Any], columns: Mapping[str, Any], around: Surroundings, options: Mapping[str, Any]
) -> object:
    texts = around.fill(list(case["completions"]) if "completions" in case else [completion_text(case)])
    try:
        reward = plan_reward(case["reward"], {**options, **case.get("options", {})})
        (scored,) = score([reward], [group_of(texts, columns)], limit_s=case.get("time_limit_s"), max_failed_share=1.0)
    except GrpoError as error:
        return ClearError(str(error))
    outcomes = [plain(outcome) for outcome in scored.outcomes[reward.name]]
    return outcomes if "completions" in case else outcomes[0]


def _next(case: Mapping[str, Any]) -> object:
    """The score of a right program, in the same process and right after the case."""
    reward = plan_reward(case["reward"])
    (scored,) = score([reward], [group_of([_RIGHT], {"tests": _RIGHT_TESTS})])
    return scored.outcomes[reward.name][0]


def _options(setup: str, around: Surroundings) -> Mapping[str, Any]:
    """What a case's setup means for the reward's options."""
    if "interpreter" in setup:
        missing = "does not exist" in setup or "missing" in setup
        return {"executor": {"interpreter": str(around.no_interpreter(exists=not missing))}}
    if setup and not _variables(setup):
        raise ValueError(f"nobody knows how to set up: {setup}")
    return {}


def _variables(setup: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", setup)) if "calling process" in setup else {}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def _without_processes(case: Mapping[str, Any], columns: Mapping[str, Any], around: Surroundings) -> object:
    asked = {"reward": case["reward"], "completion": around.fill(completion_text(case)), "columns": columns}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases.no_new_processes"],
        input=json.dumps(asked),
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_CHILD_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr[-500:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    return ClearError(said["error"]) if "error" in said else said["outcome"]
