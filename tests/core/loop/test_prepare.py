from __future__ import annotations

from grpo_core.loop.prepare import reward_notes
from grpo_core.reward.check import check_rewards
from grpo_core.types import BuildContext
from tests.core.reward.making import planned


class Sandboxed:
    def __call__(self, completions: list[str]) -> list[float]:
        return [0.0 for _ in completions]

    def describe(self) -> str:
        return "a sandbox without network"


sandboxed = Sandboxed()


def test_what_a_reward_says_of_where_it_runs_is_a_note_of_the_launch() -> None:
    rewards = [planned(f"{__file__}:sandboxed"), planned("grpo_core.reward.builtin.think_answer:format_reward")]
    bound = check_rewards(rewards, [], BuildContext())
    assert list(reward_notes(bound)) == [f"{bound[0].planned.name}: a sandbox without network"]
