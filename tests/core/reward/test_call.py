"""One call, and everything that foreign code can do in it."""

from __future__ import annotations

import functools
import time

import pytest

from grpo_core.reward.call import CallResult, call, is_async
from grpo_core.types import Failed
from tests.core.reward import rewards_of_a_user as rewards


def run(function: object, *texts: str, **more: object) -> CallResult:
    arguments = {"completions": list(texts)} | more
    return call(function, arguments, count=len(texts), records="record" in function.__code__.co_varnames)  # type: ignore[attr-defined, arg-type]


def reason(function: object, *texts: str) -> str:
    (outcome,) = set(run(function, *texts).outcomes)
    assert isinstance(outcome, Failed)
    return outcome.reason


def test_scores_come_with_what_was_recorded() -> None:
    result = run(rewards.records, "a", "b", solution=["a", "a"])
    assert result.outcomes == (1.0, 0.0)
    assert result.records == {"parsed": ("A", "B"), "all": ({"n": 2}, {"n": 2})}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise verification_info", "raised KeyError: 'verification_info' (rewards_of_a_user.py:"),
        ("exit 3", "it calls sys.exit(3) (rewards_of_a_user.py:"),
    ],
)
def test_an_exception_fails_every_sample_of_the_call_with_its_place(text: str, expected: str) -> None:
    assert reason(rewards.by_text, text, text).replace("tests/core/reward/", "").startswith(expected)


def test_ctrl_c_is_not_a_failure_of_the_reward() -> None:
    def interrupted(completions):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted, "a")


def test_a_wrong_record_fails_the_call_and_says_so() -> None:
    assert "record('parsed') got 3 values for 1 completions" in reason(rewards.records_wrongly, "a")


def test_a_call_that_hangs_in_this_process_is_named_while_it_hangs(caplog: pytest.LogCaptureFixture) -> None:
    said_before_it_ended: list[str] = []

    def waits_to_be_told_of(completions: list[str]) -> list[float]:
        until = time.monotonic() + 30
        while not caplog.messages and time.monotonic() < until:
            time.sleep(0.01)
        said_before_it_ended.extend(caplog.messages)
        return [1.0 for _ in completions]

    call(waits_to_be_told_of, {"completions": ["a"]}, count=1, records=False, deadline_s=0.05)
    [message] = said_before_it_ended
    assert "waits_to_be_told_of has been running for 0.05 s, its deadline, in the main process" in message
    assert "`runs_in: worker` would have it killed" in message


def test_a_call_in_time_is_not_talked_about(caplog: pytest.LogCaptureFixture) -> None:
    for deadline_s in (None, 60.0, 1e300):
        call(rewards.records, {"completions": ["a"], "solution": ["a"]}, count=1, records=True, deadline_s=deadline_s)
    assert not caplog.messages


def test_a_synchronous_call_over_its_deadline_has_failed_although_nothing_could_stop_it() -> None:
    result = call(rewards.too_slow, {"completions": ["a"]}, count=1, records=False, deadline_s=0.1)
    assert result.outcomes == (
        Failed("took longer than its deadline of 0.1 s; `runs_in: worker` would have stopped it"),
    )


def test_functions_partials_and_objects_say_whether_they_are_async() -> None:
    assert is_async(rewards.slowly)
    assert is_async(functools.partial(rewards.slowly))
    assert is_async(rewards.async_object)
    assert not is_async(rewards.length)
    assert not is_async(rewards.callable_object)
    assert not is_async(3)
