"""`code_reward`: does the program in the completion pass the tests of its row?

Place in the flow: completion → program, row → problem → job → run results → comparison → **score**.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

from grpo_core.api import BuildContext, Failed, GrpoError, RewardError
from grpo_rewards_code.compare import Tolerance
from grpo_rewards_code.executor.make import make_executor
from grpo_rewards_code.executor.types import Executor, ExecutorError
from grpo_rewards_code.judge import Verdict, check_problem, judge
from grpo_rewards_code.options import CodeRewardOptions
from grpo_rewards_code.problem.row import read_problem
from grpo_rewards_code.problem.types import Problem, TestsError
from grpo_rewards_code.program.find import find_program

__all__ = ["CodeReward", "make"]

_LOG = logging.getLogger("grpo_core")
_MAX_REMEMBERED_PROBLEMS = 64  # tests of one problem may be megabytes
_MAX_REPORTED = 20
_SHOWN_CHARACTERS = 400

Row = Mapping[str, object]


def make(options: CodeRewardOptions, context: BuildContext) -> CodeReward:
    """Build the reward; raises `RewardError` when programs cannot run as isolated as the options demand."""
    try:
        executor = make_executor(options.executor, local_world_size=context.local_world_size)
    except GrpoError:
        raise
    except ExecutorError as error:
        raise RewardError(f"code_reward cannot run programs: {error}") from error
    return CodeReward(options, executor)


class CodeReward:
    """The reward function."""

    def __init__(self, options: CodeRewardOptions, executor: Executor) -> None:
        self._options = options
        self._executor = executor
        self._limits = options.limits()
        self._tolerance = Tolerance(relative=options.relative_tolerance, absolute=options.absolute_tolerance)
        self._problems: OrderedDict[bytes, Problem] = OrderedDict()
        self._reported: set[str] = set()

    def describe(self) -> str:
        """Where programs run, and how isolated."""
        return self._executor.describe()

    def unjudgeable(self, columns: Row) -> str | None:
        """Why a row cannot be judged, as far as reading it tells: without its tests, or with unreadable ones."""
        try:
            self._read(columns)
        except TestsError as error:
            return str(error)
        return None

    async def aclose(self) -> None:
        """End everything that still runs."""
        await self._executor.aclose()

    async def __call__(
        self,
        completions: Sequence[str],
        tests: Sequence[object] | None = None,
        test_cases: Sequence[object] | None = None,
        input_output: Sequence[object] | None = None,
        public_test_cases: Sequence[object] | None = None,
        private_test_cases: Sequence[object] | None = None,
        verification_info: Sequence[object] | None = None,
        test_list: Sequence[object] | None = None,
        test: Sequence[object] | None = None,
        test_setup_code: Sequence[object] | None = None,
        test_imports: Sequence[object] | None = None,
        entry_point: Sequence[object] | None = None,
        fn_name: Sequence[object] | None = None,
        metadata: Sequence[object] | None = None,
        prompts: Sequence[str] | None = None,
        sample_ids: Sequence[str] | None = None,
        record: Callable[[str, object], None] | None = None,
    ) -> list[float | Failed | None]:
        """1.0 when the program passes every test of its row, else 0.0; with `partial` the share that it passes.

        None where a row has no tests, or tests that cannot be judged (reported once a reason, with the row); `Failed`
        where the sandbox or the service failed.
        """
        columns = {
            "tests": tests,
            "test_cases": test_cases,
            "input_output": input_output,
            "public_test_cases": public_test_cases,
            "private_test_cases": private_test_cases,
            "verification_info": verification_info,
            "test_list": test_list,
            "test": test,
            "test_setup_code": test_setup_code,
            "test_imports": test_imports,
            "entry_point": entry_point,
            "fn_name": fn_name,
            "metadata": metadata,
        }
        rows = [
            {name: values[index] for name, values in columns.items() if values is not None}
            for index in range(len(completions))
        ]
        thoughts = [prompt.rstrip().endswith("<think>") for prompt in prompts or [""] * len(completions)]
        names = sample_ids or [""] * len(completions)
        judged = await asyncio.gather(*map(self._score, completions, rows, thoughts, names))
        if record is not None:
            record("code_tests", [verdict for _, verdict in judged])
        return [score for score, _ in judged]

    async def _score(
        self, completion: str, row: Row, in_thought: bool, sample_id: str
    ) -> tuple[float | Failed | None, str | None]:
        """The score, and what it is for."""
        try:
            problem = self._problem(row)
            verdict = await self._judged(completion, problem, in_thought)
        except TestsError as error:
            self._report(str(error), row, sample_id)
            return None, f"no judgement: {error}"
        except ExecutorError as error:
            return Failed(f"the program could not be run: {error}"), None
        except Exception as error:  # noqa: BLE001 - a fault of ours is this sample's alone, not that of all the others
            _LOG.warning("code_reward could not judge a program", exc_info=True)
            return Failed(f"the program could not be judged: {type(error).__name__}: {error}"), None
        share = verdict.passed / verdict.tests
        score = share if self._options.partial else float(verdict.passed == verdict.tests)
        passed = f"{verdict.passed} of {verdict.tests} tests passed"
        return score, f"{passed}; {verdict.reason}" if verdict.reason else passed

    async def _judged(self, completion: str, problem: Problem, in_thought: bool) -> Verdict:
        program = find_program(completion, problem.names, in_thought=in_thought)
        flaw = _flaw(program)
        if program is None or flaw:
            return Verdict(passed=0, tests=len(problem.tests), reason=flaw or "no program")
        return await judge(
            program,
            problem,
            self._executor,
            self._limits,
            tolerance=self._tolerance,
            total_s=self._options.total_timeout_s,
            partial=self._options.partial,
        )

    def _problem(self, row: Row) -> Problem:
        """The row's problem, read once for all its completions, as long as it is remembered."""
        key = _key(row)
        problem = self._problems.get(key)
        if problem is None:
            problem = self._problems[key] = self._read(row)
            if len(self._problems) > _MAX_REMEMBERED_PROBLEMS:
                self._problems.popitem(last=False)
        return problem

    def _read(self, row: Row) -> Problem:
        problem = read_problem(row)
        check_problem(problem, self._executor)
        return problem

    def _report(self, reason: str, row: Row, sample_id: str) -> None:
        """Say once for each reason which row it is."""
        if reason in self._reported or len(self._reported) >= _MAX_REPORTED:
            return
        self._reported.add(reason)
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in row.items() if value is not None)
        _LOG.warning(
            "code_reward does not apply to %s: %s. The row has %s; others like it are not reported",
            f"sample {sample_id}" if sample_id else "a sample",
            reason,
            shown or "no value in any column of tests",
        )


def _key(row: Row) -> bytes:
    try:
        written = pickle.dumps(sorted(row.items(), key=lambda item: item[0]))
    except RecursionError as error:
        raise TestsError("its tests are nested too deeply") from error
    return blake2b(written, digest_size=16).digest()


def _shown(value: object) -> str:
    try:
        return f"{value!r:.{_SHOWN_CHARACTERS}}"
    except (RecursionError, ValueError):  # nested too deeply, or a number of more digits than Python writes
        return f"a {type(value).__name__} that cannot be shown"


def _flaw(program: str | None) -> str:
    """Why a text cannot be the source of a program, or nothing."""
    if program is None:
        return "no program"
    if "\0" in program:
        return "the program holds a NUL character"
    try:
        program.encode("utf-8")
    except UnicodeEncodeError:
        return "the program holds half a character (a lone surrogate)"
    return ""
