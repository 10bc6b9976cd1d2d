"""Rewards for cases, planned and run the way a training run does it: from the catalog, through the scorer."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from grpo_core.cli.common import load_plugins
from grpo_core.cli.planning import gather, make_plan
from grpo_core.errors import GrpoError
from grpo_core.recipe.layers import layer_of, merge
from grpo_core.recipe.plan import PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_core.types import (
    BuildContext,
    Completion,
    Failed,
    FinishReason,
    Message,
    RolloutGroup,
    RolloutRequest,
    Sample,
    SamplingParams,
    ScoredGroup,
)
from tests.cases.bank import NotYetError
from tests.cases.expect import ClearError

__all__ = ["captured_warnings", "group_of", "plain", "plan_reward", "registered", "score", "score_one"]


def registered(name: str) -> bool:
    """Whether some plugin registers a reward of this name."""
    return name in _reward_names()


def plan_reward(name: str, options: Mapping[str, Any] | None = None, **entry: Any) -> PlannedReward:
    """A reward as a recipe names it; raises `NotYetError` for a name that nothing registers."""
    if ":" not in name and not registered(name):
        raise NotYetError(name)
    return _planned(json.dumps({"use": name, "options": options or {}, **entry}))


def group_of(
    texts: Sequence[str],
    columns: Mapping[str, object] | None = None,
    *,
    prompt: str = "",
    token_ids: Sequence[Sequence[int]] | None = None,
    row: int = 0,
) -> RolloutGroup:
    """The completions of one prompt."""
    ids = token_ids or [(0,)] * len(texts)
    sample = Sample(messages=(Message(role="user", content="?"),), columns=dict(columns or {}), id=f"train-{row:06d}")
    return RolloutGroup(
        request=RolloutRequest(
            sample=sample,
            prompt_text=prompt,
            prompt_ids=(0,),
            n=len(texts),
            params=SamplingParams(max_tokens=8),
            seed=0,
        ),
        completions=tuple(
            Completion(
                text=text,
                token_ids=tuple(of_text),
                sampling_logprobs=(0.0,) * len(of_text),
                finish_reason=FinishReason.STOP,
            )
            for text, of_text in zip(texts, ids, strict=True)
        ),
    )


def score(
    rewards: Sequence[PlannedReward], groups: Sequence[RolloutGroup], *, limit_s: float | None = None, **scoring: Any
) -> tuple[ScoredGroup, ...]:
    """Score groups in one step; an AssertionError when the scores take longer than the limit."""
    columns = {column for group in groups for column in group.sample.columns}
    scorer = Scorer(rewards, ScoringSettings(**scoring), columns, BuildContext())
    try:
        began = time.monotonic()
        step = scorer.begin(step=1, epoch=0.0, progress=0.0, max_steps=1)
        for group in groups:
            step.add(group)
        scored = step.finish()
        took_s = time.monotonic() - began
    finally:
        scorer.close()
    assert limit_s is None or took_s <= limit_s, f"took {took_s:.1f} s, more than {limit_s} s"
    return scored


def score_one(
    name: str, group: RolloutGroup, options: Mapping[str, Any] | None = None, *, limit_s: float | None = None
):  # type: ignore[no-untyped-def]
    """The outcome of one reward for one completion; `ClearError` for an error of the framework's own."""
    try:
        reward = plan_reward(name, options)
        (scored,) = score([reward], [group], limit_s=limit_s, max_failed_share=1.0)
    except GrpoError as error:
        return ClearError(str(error))
    return plain(scored.outcomes[reward.name][0])


def plain(outcome: object) -> object:
    """A failed score as the error it is reported as."""
    return ClearError(outcome.reason) if isinstance(outcome, Failed) else outcome


@contextmanager
def captured_warnings() -> Iterator[list[str]]:
    """What the framework warns of inside."""
    seen: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("grpo_core")
    logger.addHandler(handler)
    try:
        yield seen
    finally:
        logger.removeHandler(handler)


@lru_cache(maxsize=1)
def _reward_names() -> frozenset[str]:
    return frozenset(
        spelling
        for entry in load_plugins(warn=False).catalog.entries("reward")
        for spelling in (entry.spec.name, *entry.spec.aliases)  # type: ignore[union-attr]
    )


@lru_cache(maxsize=256)
def _planned(entry: str) -> PlannedReward:
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        rows.write_text('{"query": "?"}\n', encoding="utf-8")
        layer = gather(None, {"model": "none", "dataset": str(rows)})
        plan, _host = make_plan(merge(layer, layer_of(("rewards",), [json.loads(entry)], "case", base=Path())))
    return plan.rewards[0]
