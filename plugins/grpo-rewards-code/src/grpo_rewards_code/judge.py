"""Judges one program against one problem: runs it, and compares outside what comes back.

Runs go out in batches that grow, since most wrong programs fail early, and that fit in the time that is left even if
each run takes all of its own. What must be evaluated (an assertion that is
more than a comparison, an expected value that is an expression) runs apart, in a job without the program.

Place in the flow: program, problem → **job → run results → comparison** → score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from grpo_rewards_code.checks import UNDECIDED, filled, has_data, holds
from grpo_rewards_code.compare import Tolerance
from grpo_rewards_code.executor.types import CallRun, Executor, ExpressionRun, Job, Limits, RunResult, StdinRun
from grpo_rewards_code.executor.values import TooLargeError, decode, encode
from grpo_rewards_code.problem.types import Close, Equal, Later, Member, Problem, Shell, Test, TestsError
from grpo_rewards_code.program.usual_imports import with_usual_imports

__all__ = ["Verdict", "judge", "prepare"]

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


async def prepare(problem: Problem, executor: Executor, limits: Limits) -> Problem:
    """The problem with every expected value evaluated, apart from any program.

    Raises `TestsError` when one cannot be, when an argument has no form in which a program could be given it, or when
    an import of the tests does not work where programs run, and `ExecutorError`.
    """
    _check_forms(problem)
    later = list(dict.fromkeys(each.run for test in problem.tests for each in _later(test)))
    shells = [test.check.setup for test in problem.tests if isinstance(test.check, Shell)]
    setups = [line for line in dict.fromkeys([*problem.imports, *shells]) if line]
    if not later and not setups:
        return problem
    runs = [*(ExpressionRun(expression="None", setup=line) for line in setups), *later]
    results = await executor.run(Job(program="", runs=runs, limits=limits))
    for run, result in zip(runs, results, strict=False):
        if result.status != "ok" or not has_data(result.value):
            what = run.setup if run.expression == "None" else run.expression
            why = _last_line(result.detail) or f"{result.value!r:.80} has no form as data"
            raise TestsError(f"what its tests need cannot be evaluated: {what:.200}: {why}")
    values = dict(zip(later, (result.value for result in results[len(setups) :]), strict=True))
    return replace(problem, tests=tuple(_with_values(test, values) for test in problem.tests), imports=())


def _check_forms(problem: Problem) -> None:
    """Raise `TestsError` where a program would be given, or asked for, something else than the test says."""
    for test in problem.tests:
        expected = test.check.any_of if isinstance(test.check, Equal) else ()
        arguments = [run.arguments for run in test.runs if isinstance(run, CallRun)]
        for value in (*arguments, *(each for each in expected if not isinstance(each, Later))):
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
    """Run a program on the tests of a prepared problem, all of them when `partial`, else up to the first failure.

    `total_s`: seconds that all its runs may take together. Raises `ExecutorError`.
    """
    called = with_usual_imports(program) if any(_calls(test) for test in problem.tests) else program
    passed, spent_s, reason = 0, 0.0, ""
    undecided: list[tuple[int, Shell, list[object]]] = []
    start, size = 0, _FIRST_BATCH_RUNS
    while start < len(problem.tests):
        left_s = total_s - spent_s
        if left_s <= 0:
            reason = reason or f"its tests take longer than {total_s:g} s together"
            break
        batch = _batch(problem.tests, start, min(size, left_s / limits.wall_s))
        runs = [run for _, test in batch for run in test.runs]
        source = called if _calls(batch[0][1]) else program
        capped = replace(limits, wall_s=min(limits.wall_s, max(left_s / len(runs), _SHORTEST_WALL_S)))
        results = await executor.run(Job(program=source, runs=runs, limits=capped, stop_at_failure=not partial))
        start, size = start + len(batch), min(2 * size, _LARGEST_BATCH_RUNS)
        spent_s += sum(result.wall_s for result in results)
        for number, test, own in _by_test(batch, results):
            found = holds(test, own, tolerance)
            if found is UNDECIDED and isinstance(test.check, Shell):
                undecided.append((number, test.check, [result.value for result in own]))
            elif found is True:
                passed += 1
            else:
                reason = reason or f"test {number}: {_what(own, len(test.runs))}"
        if reason and not partial:
            break
    if undecided and (partial or not reason):
        decided, why = await _evaluated(undecided, executor, limits)
        passed, reason = passed + decided, reason or why
    return Verdict(passed=passed, tests=len(problem.tests), reason=reason)


async def _evaluated(
    undecided: Sequence[tuple[int, Shell, list[object]]], executor: Executor, limits: Limits
) -> tuple[int, str]:
    """How many assertions hold with the program's values in them, and which is the first that does not."""
    runs = [filled(shell, values) for _, shell, values in undecided]
    results = await executor.run(Job(program="", runs=runs, limits=limits, stop_at_failure=False))
    good = [result.status == "ok" and result.value is True for result in results]
    failed = next((number for (number, _, _), well in zip(undecided, good, strict=True) if not well), None)
    return sum(good), "" if failed is None else f"test {failed}: the assertion does not hold"


def _batch(tests: Sequence[Test], start: int, most_runs: float) -> list[tuple[int, Test]]:
    """The next tests, numbered from 1, at least one; all of them scripts, or all of them calls."""
    batch: list[tuple[int, Test]] = []
    runs = 0
    for number, test in enumerate(islice(tests, start, None), start=start + 1):
        runs += len(test.runs)
        if batch and (runs > most_runs or _calls(batch[0][1]) != _calls(test)):
            break
        batch.append((number, test))
    return batch


def _by_test(
    batch: Sequence[tuple[int, Test]], results: Sequence[RunResult]
) -> Iterator[tuple[int, Test, Sequence[RunResult]]]:
    """Each test with its results, which may lack the last ones where the job stopped."""
    start = 0
    for number, test in batch:
        yield number, test, results[start : start + len(test.runs)]
        start += len(test.runs)


def _calls(test: Test) -> bool:
    return not isinstance(test.runs[0], StdinRun)


def _what(results: Sequence[RunResult], wanted: int) -> str:
    for result in results:
        if result.status != "ok":
            return f"{result.status}: {_last_line(result.detail)}".rstrip(": ")
    return "wrong answer" if len(results) == wanted else "not run"


def _last_line(detail: str) -> str:
    lines = detail.strip().splitlines()
    return lines[-1][:200] if lines else ""


def _later(test: Test) -> Iterator[Later]:
    match test.check:
        case Equal(any_of=values):
            yield from (value for value in values if isinstance(value, Later))
        case Close(expected=Later() as value) | Member(collection=Later() as value):
            yield value


def _with_values(test: Test, values: dict[ExpressionRun, object]) -> Test:
    def known(value: object) -> object:
        return values[value.run] if isinstance(value, Later) else value

    match test.check:
        case Equal(any_of=several):
            return replace(test, check=replace(test.check, any_of=tuple(map(known, several))))
        case Close(expected=expected):
            return replace(test, check=replace(test.check, expected=known(expected)))
        case Member(collection=collection):
            return replace(test, check=replace(test.check, collection=known(collection)))
    return test
