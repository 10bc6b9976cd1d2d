"""Drawing and scoring over ranks: whatever the number of ranks, rank 0 has the same groups and everyone the same
facts, whatever a reward must see at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from grpo_core.errors import RewardError
from grpo_core.loop.facts import Known, learn
from grpo_core.loop.parts import Parts
from grpo_core.loop.scores import bring_together, roll_and_score
from grpo_core.loop.timing import Clock
from grpo_core.plugins.targets import load_module
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.binding import RunValues
from grpo_core.reward.scoring import Scorer
from grpo_core.types import (
    BuildContext,
    Completion,
    FinishReason,
    RolloutGroup,
    RolloutRequest,
    SamplingParams,
    ScoredGroup,
)
from tests.core.reward.making import planned, sample
from tests.thread_ranks import ThreadRanks, as_ranks

REWARDS = """
def length(completions, record):
    record("said", completions)
    return [float(len(text)) for text in completions]

def place_in_group(completions):
    return [float(i) for i in range(len(completions))]

def place_in_step(completions):
    return [float(i) for i in range(len(completions))]

def says_so_itself(completions):
    return [float(i) for i in range(len(completions))]

says_so_itself.scope = "group"

def fails_on_rank_one(completions):
    return [float("nan") if text.endswith("0") else 1.0 for text in completions]
"""


class StreamRollout:
    """Completion i of a request says which one it is, as real streams make it say the same on every rank."""

    def generate(self, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
        for request in reversed(requests):  # in any order
            yield RolloutGroup(
                request=request,
                completions=tuple(self._completion(request, request.first_member + i) for i in range(request.n)),
            )

    def _completion(self, request: RolloutRequest, member: int) -> Completion:
        text = f"{request.sample.id}/{member}"
        ids = tuple(range(1 + (request.seed + member) % 4))
        finish = FinishReason.LENGTH if member == 2 else FinishReason.STOP
        return Completion(text=text, token_ids=ids, sampling_logprobs=(-1.0,) * len(ids), finish_reason=finish)


@pytest.fixture
def rewards_file(tmp_path: Path) -> Path:
    path = tmp_path / "rewards.py"
    path.write_text(REWARDS)
    return path


def requests_of(groups: int, completions: int) -> list[RolloutRequest]:
    return [
        RolloutRequest(
            sample=sample(id=f"train-{place}"),
            prompt_text="?",
            prompt_ids=tuple(range(place + 1)),
            n=completions,
            params=SamplingParams(max_tokens=8),
            seed=place,
        )
        for place in range(groups)
    ]


def scored_on(
    ranks: int, rewards_file: Path, *names: str, groups: int = 3, completions: int = 4
) -> tuple[list[tuple[ScoredGroup, ...]], list[Known]]:
    """What each rank has in the end."""
    scopes = {"place_in_group": "group", "place_in_step": "step", "says_so_itself": None}
    rewards = [planned(f"{rewards_file}:{name}", name=name, scope=scopes.get(name, "sample")) for name in names]
    requests = requests_of(groups, completions)
    load_module(str(rewards_file))  # before the threads: they share what is imported, as processes do not

    def on_rank(rank: ThreadRanks) -> tuple[tuple[ScoredGroup, ...], Known]:
        scorer = Scorer(rewards, ScoringSettings(), (), BuildContext())
        none: Any = None
        parts = Parts(
            plan=none,
            run_dir=Path(),
            prepared=none,
            scorer=scorer,
            rollout=cast(Any, StreamRollout()),
            trainer=none,
            weights=none,
            ranks=rank,
        )
        moment = RunValues(step=1, epoch=0.0, progress=0.1, max_steps=10)
        try:
            mine = roll_and_score(parts, requests, moment, Clock(rank))
            known = learn(rank, mine)
            scorer.failures.look(known.groups, samples=[request.sample for request in requests], step=1)
            return bring_together(parts, requests, mine), known
        finally:
            scorer.close()

    results = as_ranks(ranks, on_rank)
    return [groups for groups, _ in results], [known for _, known in results]


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("ranks", [2, 3])
def test_rank_0_has_what_one_process_has_and_all_know_the_same(rewards_file: Path, ranks: int, groups: int) -> None:
    names = ("length", "place_in_group", "place_in_step", "says_so_itself")
    (alone,), (known_alone,) = scored_on(1, rewards_file, *names, groups=groups)
    several, known = scored_on(ranks, rewards_file, *names, groups=groups)
    assert several[0] == alone
    assert several[1:] == [()] * (ranks - 1)
    assert all(each.groups == known_alone.groups for each in known)


def test_a_reward_of_a_whole_group_sees_all_of_it_where_the_group_is_split(rewards_file: Path) -> None:
    several, _ = scored_on(2, rewards_file, "place_in_group", groups=1, completions=5)
    assert several[0][0].outcomes["place_in_group"] == (0.0, 1.0, 2.0, 3.0, 4.0)


def test_a_reward_of_a_whole_step_sees_all_groups(rewards_file: Path) -> None:
    several, _ = scored_on(2, rewards_file, "place_in_step", groups=2, completions=2)
    assert [one.outcomes["place_in_step"] for one in several[0]] == [(0.0, 1.0), (2.0, 3.0)]


def test_what_rewards_record_reaches_rank_0(rewards_file: Path) -> None:
    several, _ = scored_on(2, rewards_file, "length", "place_in_step", groups=1, completions=3)
    assert several[0][0].records == {"said": ("train-0/0", "train-0/1", "train-0/2")}


def test_the_ceiling_of_failures_is_over_all_ranks(rewards_file: Path) -> None:
    # A quarter of all completions fail; on one rank of two half of its own do.
    with pytest.raises(RewardError, match="failed on 1 of 4 completions"):
        scored_on(2, rewards_file, "fails_on_rank_one", groups=1, completions=4)
