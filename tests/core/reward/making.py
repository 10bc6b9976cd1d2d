"""Groups, plans and scorers for the tests of scoring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpo_core.recipe.plan import PlannedComponent, PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_core.types import (
    BuildContext,
    Completion,
    FinishReason,
    Message,
    RolloutGroup,
    RolloutRequest,
    Sample,
    SamplingParams,
    ScoredGroup,
)

REWARDS_FILE = Path(__file__).with_name("rewards_of_a_user.py")


def sample(columns: Mapping[str, object] | None = None, *, id: str = "train-000000", question: str = "1+1?") -> Sample:
    return Sample(messages=(Message(role="user", content=question),), columns=dict(columns or {}), id=id)


def group(
    texts: Sequence[str],
    columns: Mapping[str, object] | None = None,
    *,
    id: str = "train-000000",
    prompt: str = "user: 1+1?\nassistant:",
    token_ids: Sequence[Sequence[int]] | None = None,
    finish: FinishReason = FinishReason.STOP,
) -> RolloutGroup:
    """A rollout group of these texts; each character is a token where no ids are given."""
    ids = token_ids or [[ord(character) for character in text] for text in texts]
    return RolloutGroup(
        request=RolloutRequest(
            sample=sample(columns, id=id),
            prompt_text=prompt,
            prompt_ids=(1, 2),
            n=len(texts),
            params=SamplingParams(max_tokens=64),
            seed=0,
        ),
        completions=tuple(
            Completion(text=t, token_ids=tuple(i), sampling_logprobs=(0.0,) * len(i), finish_reason=finish)
            for t, i in zip(texts, ids, strict=True)
        ),
    )


def planned(target: str, **changes: Any) -> PlannedReward:
    """A planned reward; `target` is an attribute of rewards_of_a_user.py or a whole target."""
    full = target if ":" in target else f"{REWARDS_FILE}:{target}"
    component = PlannedComponent(
        name=full,
        target=full,
        options_model=changes.pop("options_model", None),
        options=changes.pop("options", {}),
    )
    settings: dict[str, Any] = {
        "name": target.rpartition(":")[2],
        "component": component,
        "weight": 1.0,
        "columns": {},
        "tasks": (),
        "scope": "sample",
        "pure": False,
        "budget_s": None,
        "deadline_s": 20.0,
        "runs_in": "main",
        "verifies": False,
    }
    return PlannedReward.model_validate(settings | changes)


@contextmanager
def scorer(*rewards: PlannedReward, columns: Sequence[str] = (), **scoring: Any) -> Iterator[Scorer]:
    made = Scorer(rewards, ScoringSettings(**scoring), columns, BuildContext())
    try:
        yield made
    finally:
        made.close()


def score(made: Scorer, *groups: RolloutGroup, step: int = 1) -> tuple[ScoredGroup, ...]:
    scoring = made.begin(step=step, epoch=0.5, progress=0.1, max_steps=10)
    for one in groups:
        scoring.add(one)
    return scoring.finish()


def score_once(reward: PlannedReward, *groups: RolloutGroup, columns: Sequence[str] = (), **scoring: Any) -> list[Any]:
    """The outcomes of one reward, all groups in a row."""
    with scorer(reward, columns=columns, **scoring) as made:
        return [outcome for one in score(made, *groups) for outcome in one.outcomes[reward.name]]
