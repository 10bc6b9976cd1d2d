"""Where a reward says it runs."""

from __future__ import annotations

import sys

from grpo_core.reward.check import check_rewards
from grpo_core.reward.place import own_words, place_of
from grpo_core.types import BuildContext
from tests.core.reward.making import planned


class Sandboxed:
    def __call__(self, completions: list[str]) -> list[float]:
        return [0.0 for _ in completions]

    def describe(self) -> str:
        return "bubblewrap 0.11:\n  no network"


class Mute(Sandboxed):
    def describe(self) -> str:
        raise OSError("no such tool")


class Leaving(Sandboxed):
    def describe(self) -> str:
        sys.exit(0)


sandboxed = Sandboxed()


async def asked(completions: list[str]) -> list[float]:
    return [0.0 for _ in completions]


def place(attribute: str, **changes: object) -> str:
    (bound,) = check_rewards([planned(f"{__file__}:{attribute}", **changes)], [], BuildContext())
    return place_of(bound)


def test_a_plain_function_runs_in_this_process_or_in_a_worker() -> None:
    builtin = "grpo_core.reward.builtin.think_answer:format_reward"
    (bound,) = check_rewards([planned(builtin)], [], BuildContext())
    assert place_of(bound) == "in this process"
    (bound,) = check_rewards([planned(builtin, runs_in="worker", budget_s=2.5)], [], BuildContext())
    assert place_of(bound) == "in a killable worker, 2.5 s an answer"


def test_an_async_reward_runs_on_the_event_loop() -> None:
    assert place("asked") == "in this process, on the event loop"


def test_a_reward_that_describes_itself_is_quoted_on_one_line() -> None:
    assert place("sandboxed", runs_in="worker") == "in a killable worker; bubblewrap 0.11: no network"


def test_a_description_that_fails_is_said_and_ends_nothing() -> None:
    words = own_words(Mute())
    assert words is not None
    assert words.startswith("its describe() fails: OSError: no such tool")
    assert str(own_words(Leaving())).startswith("its describe() fails: it calls sys.exit(0) (")
