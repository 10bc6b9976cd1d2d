"""Judging programs by scripts in real sandboxes, many in one go: those that start for the first serve all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from grpo_rewards_code.compare import Tolerance
from grpo_rewards_code.executor.types import Executor, Limits
from grpo_rewards_code.judge import Verdict, judge
from grpo_rewards_code.problem.row import read_problem
from grpo_rewards_code.problem.types import TestsError

__all__ = ["Case", "payment", "talks", "unpaid"]

Case = tuple[str, str | dict[str, Any]]
QUICK = Limits(wall_s=20.0, cpu_s=2.0)


def talks(
    executor: Executor, cases: Sequence[Case], limits: Limits = QUICK, **settings: Any
) -> list[Verdict | TestsError]:
    """What became of each program, with its tests as text or as a row."""

    async def one(program: str, tests: str | dict[str, Any]) -> Verdict | TestsError:
        try:
            problem = read_problem(tests if isinstance(tests, dict) else {"test": tests})
            return await judge(program, problem, executor, limits, tolerance=Tolerance(), **settings)
        except TestsError as error:
            return error

    async def every() -> list[Verdict | TestsError]:
        return await asyncio.gather(*(one(*case) for case in cases))

    return asyncio.run(every())


def payment(found: Verdict | TestsError) -> int | None:
    """1 for all tests passed, 0 for less, None for no judgement."""
    return None if isinstance(found, TestsError) else int(found.passed == found.tests)


def unpaid(executor: Executor, cases: Sequence[Case], wanted: int | None, **settings: Any) -> list[object]:
    """The cases that did not get what is wanted, with what they got."""
    found = talks(executor, cases, **settings)
    return [(case, one) for case, one in zip(cases, found, strict=True) if payment(one) != wanted]
