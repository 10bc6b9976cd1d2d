"""Judges one program against one problem: runs it, and compares outside what comes back.

Runs go out in batches that grow, since most wrong programs fail early, and that fit in the time that is left even if
each run takes all of its own. Test code is a job of its own: it asks the program from another sandbox.

Place in the flow: program, problem → **job → run results → comparison** → score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grpo_rewards_code.checks import has_data, holds
from grpo_rewards_code.compare import Tolerance
from grpo_rewards_code.executor.types import CallRun, Executor, Job, Limits, RunResult, ScriptJob, StdinRun
from grpo_rewards_code.executor.values import TooLargeError, decode, encode
from grpo_rewards_code.problem.types import Equal, Problem, Script, Test, TestsError
from grpo_rewards_code.program.usual_imports import with_usual_imports

__all__ = ["Verdict", "check_problem", "judge"]

_FIRST_BATCH_RUNS = 8
_LARGEST_BATCH_RUNS = 64
_SHORTEST_WALL_S = 1.0  # Judge0 takes no shorter one


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a program."""

    passed: int
    """Tests that passed; of the others some may not have been run."""
    tests: int
    """All tests."""
    reason: str = ""
    """What was wrong first, for a person."""


def check_problem(problem: Problem, executor: Executor) -> None:
    """Raise `TestsError` where a program would be given, or asked for, something else than a test says, or where the
    executor cannot run test code."""
    if problem.script is not None and not executor.runs_scripts:
        raise TestsError(f"its tests are code, which is not run here ({executor.describe()})")
    for test in problem.tests:
        expected = test.check.any_of if isinstance(test.check, Equal) else ()
        for value in (*(test.run.arguments if isinstance(test.run, CallRun) else ()), *expected):
            try:
                has_form = has_data(decode(encode(value)))
            except (TooLargeError, ValueError):
                has_form = False
            if not has_form:
                raise TestsError("an argument or an expected value of its tests is nested too deeply, or too large")


async def judge(
    program: str,
    problem: Problem,
    executor: Executor,
    limits: Limits,
    *,
    tolerance: Tolerance,
    total_s: float = math.inf,
    partial: bool = False,
) -> Verdict:
    """Run a program on the tests of a problem, all of them when `partial`, else up to the first failure.

    `total_s`: seconds that all its runs may take together. Raises `ExecutorError`, and `TestsError` where test code
    turns out to judge no program.
    """
    if problem.script is not None:
        source = with_usual_imports(program)
        return await _judge_script(source, problem.script, executor, limits, tolerance, total_s, partial)
    called = with_usual_imports(program) if any(_calls(test) for test in problem.tests) else program
    trial = _Trial(program, called, executor, limits, tolerance, total_s, partial)
    whys = await trial.of(problem.tests)
    is_well = all(why == "" for why in whys)
    reason = "" if is_well else next((why for why in whys if why), "not run")
    return Verdict(passed=whys.count(""), tests=len(problem.tests), reason=reason)


async def _judge_script(
    program: str,
    script: Script,
    executor: Executor,
    limits: Limits,
    tolerance: Tolerance,
    total_s: float,
    partial: bool,
) -> Verdict:
    job = ScriptJob(
        program=program,
        script=script.source,
        entry_point=script.entry_point,
        limits=limits,
        checks=script.checks,
        total_s=total_s,
        go_on=partial,
        relative_tolerance=tolerance.relative,
        absolute_tolerance=tolerance.absolute,
    )
    result = await executor.run_script(job)
    if result.unjudged is not None:
        raise TestsError(result.unjudged)
    return Verdict(passed=result.passed, tests=max(result.tests, result.passed, 1), reason=result.reason)


class _Trial:
    """Runs tests of one program, for as long as there is time."""

    def __init__(
        self,
        script: str,
        called: str,
        executor: Executor,
        limits: Limits,
        tolerance: Tolerance,
        total_s: float,
        partial: bool,
    ) -> None:
        self._script, self._called = script, called
        self._executor = executor
        self._limits = limits
        self._tolerance = tolerance
        self._total_s = total_s
        self._partial = partial
        self._spent_s = 0.0

    async def of(self, tests: Sequence[Test]) -> list[str | None]:
        """Why each test failed: nothing where it passed, None where that is not known, since another failed."""
        whys: list[str | None] = [None] * len(tests)
        start, size = 0, _FIRST_BATCH_RUNS
        while start < len(tests):
            left_s = self._total_s - self._spent_s
            if left_s <= 0:
                whys[start] = f"its tests take longer than {self._total_s:g} s together"
                break
            batch = _batch(tests, start, min(size, left_s / self._limits.wall_s))
            results = await self._results(batch, left_s)
            for index, (test, result) in enumerate(zip(batch, results, strict=False), start=start):
                well = holds(test, result, self._tolerance)
                whys[index] = "" if well else f"test {index + 1}: {_what(result)}"
            if len(results) < len(batch) and not any(whys):
                whys[start + len(results)] = f"test {start + len(results) + 1}: not run"
            start, size = start + len(batch), min(2 * size, _LARGEST_BATCH_RUNS)
            if any(whys) and not self._partial:
                break
        return whys

    async def _results(self, batch: Sequence[Test], left_s: float) -> Sequence[RunResult]:
        wall_s = min(self._limits.wall_s, max(left_s / len(batch), _SHORTEST_WALL_S))
        source = self._called if _calls(batch[0]) else self._script
        job = Job(
            program=source,
            runs=[test.run for test in batch],
            limits=replace(self._limits, wall_s=wall_s),
            stop_at_failure=not self._partial,
        )
        results = await self._executor.run(job)
        self._spent_s += sum(result.wall_s for result in results)
        return results


def _batch(tests: Sequence[Test], start: int, most: float) -> Sequence[Test]:
    """The next tests, at least one; all of them scripts, or all of them calls."""
    end = start + 1
    while end < len(tests) and end - start + 1 <= most and _calls(tests[end]) == _calls(tests[start]):
        end += 1
    return tests[start:end]


def _calls(test: Test) -> bool:
    return not isinstance(test.run, StdinRun)


def _what(result: RunResult) -> str:
    if result.status == "ok":
        return "wrong answer"
    return f"{result.status}: {_last_line(result.detail)}".rstrip(": ")


def _last_line(detail: str) -> str:
    lines = detail.strip().splitlines()
    return lines[-1][:200] if lines else ""
