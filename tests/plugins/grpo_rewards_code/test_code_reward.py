"""The reward function: scores in order, None for rows that cannot be judged, `Failed` for broken infrastructure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from grpo_core.api import BuildContext, Failed, RewardError
from grpo_core.reward.binding import bind
from grpo_core.reward.call import is_async
from grpo_rewards_code.executor.types import ExecutorError, Run, RunResult
from grpo_rewards_code.options import CodeRewardOptions
from grpo_rewards_code.problem.row import read_problem
from grpo_rewards_code.reward import CodeReward, make
from tests.cases.scored import group_of, plan_reward, score
from tests.plugins.grpo_rewards_code.fakes import FakeExecutor, answering, failing

RIGHT = "```python\ndef f(x):\n    return x * 2\n```"
WRONG = "```python\ndef f(x):\n    return x\n```"
TESTS = {"kind": "call", "fn_name": "f", "cases": [{"args": [2], "expected": 4}, {"args": [0], "expected": 0}]}


def scores(reward: CodeReward, completions: list[str], **columns: Any) -> list[Any]:
    lists = {
        name: values if isinstance(values, list) else [values] * len(completions) for name, values in columns.items()
    }
    return asyncio.run(reward(completions, **lists))


@pytest.fixture
def executor() -> FakeExecutor:
    return FakeExecutor(answering)


@pytest.fixture
def reward(executor: FakeExecutor) -> CodeReward:
    return CodeReward(CodeRewardOptions(), executor)


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="grpo_core"):
        yield caplog


def test_scores_come_in_the_order_of_the_completions(reward: CodeReward) -> None:
    assert scores(reward, [RIGHT, WRONG, "", "<think>cut off", RIGHT], tests=TESTS) == [1.0, 0.0, 0.0, 0.0, 1.0]


def test_partial_pays_the_share_of_tests(executor: FakeExecutor) -> None:
    reward = CodeReward(CodeRewardOptions(partial=True), executor)
    assert scores(reward, [RIGHT, WRONG, ""], tests=TESTS) == [1.0, 0.5, 0.0]


def test_the_prompt_may_have_opened_the_thinking(reward: CodeReward) -> None:
    prompts = ["…<think>\n", "…"]
    assert scores(reward, [RIGHT, RIGHT], tests=TESTS, prompts=prompts) == [0.0, 1.0]


@pytest.mark.parametrize("text", ["a\0b = 1", "x = '\ud800'"])
def test_a_text_that_no_program_can_be_is_wrong_and_is_not_run(
    reward: CodeReward, executor: FakeExecutor, text: str
) -> None:
    assert scores(reward, [f"```python\n{text}\n```"], tests=TESTS) == [0.0]
    assert executor.jobs == []


def test_a_row_without_readable_tests_is_reported_once_a_reason_with_its_content(
    reward: CodeReward, warned: pytest.LogCaptureFixture
) -> None:
    broken = '{"inputs": ["3 4'
    assert scores(reward, [RIGHT, RIGHT], input_output=broken, sample_ids=["train-000007", "train-000008"]) == [
        None,
        None,
    ]
    assert scores(reward, [RIGHT], tests=None) == [None]
    assert scores(reward, [RIGHT], tests=None) == [None]
    assert len(warned.messages) == 2
    assert "does not apply to sample train-000007: column input_output: it is not JSON" in warned.messages[0]
    assert broken in warned.messages[0]
    assert "it has no tests" in warned.messages[1]


def test_a_row_without_readable_tests_is_known_before_anything_runs(reward: CodeReward, executor: FakeExecutor) -> None:
    assert reward.unjudgeable({"tests": TESTS}) is None
    assert str(reward.unjudgeable({})).startswith("it has no tests: none of its columns is tests, ")
    assert "column input_output: it is not JSON" in str(reward.unjudgeable({"input_output": '{"inputs": ["3 4'}))
    assert executor.jobs == []


def test_not_everything_is_reported(reward: CodeReward, warned: pytest.LogCaptureFixture) -> None:
    for number in range(50):
        assert scores(reward, [RIGHT], tests={"kind": f"kind{number}"}) == [None]
    assert len(warned.messages) == 20


def test_a_broken_executor_fails_each_sample_by_itself() -> None:
    def sometimes(program: str, run: Run) -> RunResult:
        return failing(program, run) if "lost" in program else answering(program, run)

    lost = "```python\nlost = 1\n```"
    reward = CodeReward(CodeRewardOptions(), FakeExecutor(sometimes))
    first, second, third = scores(reward, [RIGHT, lost, WRONG], tests=TESTS)
    assert (first, third) == (1.0, 0.0)
    assert second == Failed("the program could not be run: the service is away")


def test_a_problem_is_read_once_for_all_its_completions(reward: CodeReward, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr("grpo_rewards_code.reward.read_problem", lambda row: read.append(row) or read_problem(row))
    assert scores(reward, [RIGHT, WRONG, RIGHT], tests=TESTS) == [1.0, 0.0, 1.0]
    assert len(read) == 1


def test_what_became_of_the_tests_is_recorded(reward: CodeReward) -> None:
    recorded: dict[str, Any] = {}

    async def call() -> None:
        await reward([RIGHT, WRONG, ""], tests=[TESTS] * 3, record=recorded.__setitem__)

    asyncio.run(call())
    assert recorded["code_tests"] == [
        "2 of 2 tests passed",
        "1 of 2 tests passed; test 1: wrong answer",
        "0 of 2 tests passed; no program",
    ]


def test_it_binds_to_any_row_and_closes_its_executor(reward: CodeReward, executor: FakeExecutor) -> None:
    assert is_async(reward)
    assert set(bind(reward, name="code_reward", columns=["tests", "answer"]).columns) == {"tests"}
    assert bind(reward, name="code_reward", columns=["answer"]).columns == {}
    asyncio.run(reward.aclose())
    assert executor.is_closed
    assert reward.describe() == "fake: nothing runs"


def test_the_interpreter_that_is_missing_is_an_error_at_launch(tmp_path: Any) -> None:
    options = CodeRewardOptions.model_validate({"executor": {"interpreter": str(tmp_path / "no-python")}})
    with pytest.raises(RewardError, match="no-python"):
        make(options, BuildContext())


def test_an_executor_error_is_no_other_error() -> None:
    reward = CodeReward(CodeRewardOptions(), FakeExecutor(failing))
    assert scores(reward, [RIGHT], tests=TESTS) == [Failed("the program could not be run: the service is away")]
    assert not issubclass(ExecutorError, ValueError)


def test_a_fault_in_judging_one_program_is_that_of_no_other(executor: FakeExecutor) -> None:
    def broken(program: str, run: Run) -> RunResult:
        if "return x * 2" not in program:
            raise ZeroDivisionError("a fault of ours")
        return answering(program, run)

    right, wrong = scores(CodeReward(CodeRewardOptions(), FakeExecutor(broken)), [RIGHT, WRONG], tests=TESTS)
    assert right == 1.0
    assert wrong == Failed("the program could not be judged: ZeroDivisionError: a fault of ours")


def test_test_code_is_not_judged_where_nothing_talks_and_that_is_known_at_launch(reward: CodeReward) -> None:
    tests = {"kind": "assert", "code": ["assert f(2) == 4"]}
    reason = "its tests are code, which is not run here (fake: nothing runs)"
    assert reward.unjudgeable({"tests": tests}) == reason
    assert scores(reward, [RIGHT], tests=tests) == [None]


def test_a_row_nested_too_deeply_is_not_judged(reward: CodeReward) -> None:
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    cases = [{"args": [1], "expected": deep}]
    assert scores(reward, [RIGHT], tests={"kind": "call", "fn_name": "f", "cases": cases}) == [None]


def test_a_task_of_another_reward_is_left_to_it() -> None:
    planned = plan_reward("code_reward")
    assert (planned.tasks, planned.verifies, planned.pure, planned.deadline_s) == (("code",), True, True, 3600.0)
    rows = [{"task": "math", "tests": TESTS}, {"task": "code", "tests": TESTS}, {"task": None, "tests": TESTS}]
    scored = score([planned], [group_of([RIGHT], row, row=index) for index, row in enumerate(rows)])
    assert [one.outcomes["code_reward"] for one in scored] == [(None,), (1.0,), (1.0,)]
