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
    trial = _Trial(program, called, executor, limits, tolerance, total_s, partial)
    whys = await trial.of(problem.tests, 0)
    start = _first_not_passed(whys)
    if start is not None and start not in trial.over_limits and problem.tests[start].replay is not None:
        # A program that keeps something between its calls is right in the script as a whole.
        whole = await trial.of(problem.tests[: start + 1], start, as_script=True)
        if whole == [""]:
            rest = await trial.of(problem.tests, start + 1, as_script=True)
            whys = [*whys[:start], "", *rest]
    first = _first_not_passed(whys)
    reason = "" if first is None else next((why for why in whys if why), "not run")
    return Verdict(passed=whys.count(""), tests=len(problem.tests), reason=reason)


def _first_not_passed(whys: Sequence[str | None]) -> int | None:
    return next((index for index, why in enumerate(whys) if why != ""), None)


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
        self.over_limits: set[int] = set()
        """Tests that ended at a limit: what came before them would not help."""

    async def of(self, tests: Sequence[Test], start: int, *, as_script: bool = False) -> list[str | None]:
        """Why each of the tests from the one at `start` on failed: nothing where it passed, None where that is not
        known, since another failed. `as_script`: each after everything before it in its script."""
        whys: list[str | None] = [None] * len(tests)
        undecided: list[tuple[int, Shell, list[object]]] = []
        first, size = start, _FIRST_BATCH_RUNS
        while start < len(tests):
            left_s = self._total_s - self._spent_s
            if left_s <= 0:
                whys[start] = f"its tests take longer than {self._total_s:g} s together"
                break
            batch = _batch(tests, start, size, left_s / self._limits.wall_s, as_script=as_script)
            results = await self._results(batch, left_s)
            start, size = start + len(batch), min(2 * size, _LARGEST_BATCH_RUNS)
            for index, test, own in _by_test(batch, results):
                found = holds(test, own, self._tolerance)
                if found is UNDECIDED and isinstance(test.check, Shell):
                    undecided.append((index, test.check, [result.value for result in own]))
                else:
                    whys[index] = "" if found is True else f"test {index + 1}: {_what(own, len(test.runs))}"
                if any(result.status not in ("ok", "error") for result in own):
                    self.over_limits.add(index)
            if any(whys) and not self._partial:
                break
        if undecided and (self._partial or not any(whys)):
            for index, well in await self._evaluated(undecided):
                whys[index] = "" if well else f"test {index + 1}: the assertion does not hold"
        return whys[first:]

    async def _results(self, batch: Sequence[tuple[int, Test]], left_s: float) -> Sequence[RunResult]:
        runs = [run for _, test in batch for run in test.runs]
        times = 1 + max(test.repeats for _, test in batch)
        wall_s = min(self._limits.wall_s * times, max(left_s / len(runs), _SHORTEST_WALL_S))
        capped = replace(self._limits, wall_s=wall_s, cpu_s=self._limits.cpu_s * times)
        source = self._called if _calls(batch[0][1]) else self._script
        results = await self._executor.run(
            Job(program=source, runs=runs, limits=capped, stop_at_failure=not self._partial)
        )
        self._spent_s += sum(result.wall_s for result in results)
        return results

    async def _evaluated(self, undecided: Sequence[tuple[int, Shell, list[object]]]) -> list[tuple[int, bool]]:
        """Whether assertions hold with the program's values in them."""
        runs = [filled(shell, values) for _, shell, values in undecided]
        job = Job(program="", runs=runs, limits=self._limits, stop_at_failure=False)
        results = await self._executor.run(job)
        good = [result.status == "ok" and result.value is True for result in results]
        return [(index, well) for (index, _, _), well in zip(undecided, good, strict=True)]


def _batch(
    tests: Sequence[Test], start: int, most_runs: int, most_times: float, *, as_script: bool
) -> list[tuple[int, Test]]:
    """The next tests with their places, at least one; all of them scripts, or all of them calls.

    `most_times`: how often the time of one call fits into what is left. Those that repeat calls of others get more
    time, so one goes with none that repeats more than about twice as many: else what hangs would hang for long.
    """
    batch: list[tuple[int, Test]] = []
    runs = times = 0
    for index, test in enumerate(islice(tests, start, None), start=start):
        test = _as_script(test) if as_script else test
        runs, times = runs + len(test.runs), max(times, 1 + test.repeats)
        if batch and (runs > most_runs or runs * times > most_times or _parts_company(batch[0][1], test)):
            break
        batch.append((index, test))
    return batch


def _parts_company(first: Test, test: Test) -> bool:
    return _calls(first) != _calls(test) or test.repeats > 2 * first.repeats + 1


def _as_script(test: Test) -> Test:
    runs, calls = test.replay() if test.replay is not None else ((), 0)
    return replace(test, runs=runs, repeats=calls) if runs else test


def _by_test(
    batch: Sequence[tuple[int, Test]], results: Sequence[RunResult]
) -> Iterator[tuple[int, Test, Sequence[RunResult]]]:
    """Each test with its results, which may lack the last ones where the job stopped."""
    start = 0
    for index, test in batch:
        yield index, test, results[start : start + len(test.runs)]
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
