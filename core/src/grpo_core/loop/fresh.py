"""Whether the engine computes with the weights that it has just been given, where a step's own completions cannot tell.

Completions that are drawn ahead are of older weights than the trainer's, so their log-probabilities differ from the
trainer's by what was learnt since. A fingerprint says which weights arrived, not which ones are computed with. So
before a step is drawn ahead, the engine draws the first tokens of a few of its prompts, and the trainer, which has the
same weights at that moment, computes them too, while the engine goes on with the step.

Place in the flow: weights → **fresh** → the next step's rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grpo_core.loop.ahead import Asked
from grpo_core.loop.batches import batch_of, train_group
from grpo_core.loop.facts import one_space
from grpo_core.loop.guards import check_sampler_gap
from grpo_core.loop.parts import Parts
from grpo_core.types import RolloutGroup, RolloutRequest

__all__ = ["compare", "draw_beginnings"]

_PROMPTS = 4
"""Of each rank."""
_COMPLETIONS = 4
"""Of each of these."""
_TOKENS = 16
"""Of each of these: together enough for a mean that no single token makes."""


def draw_beginnings(parts: Parts, asked: Asked) -> list[RolloutGroup]:
    """The first tokens of some of this rank's completions, with the weights that the engine has now; while nothing else
    is drawn."""
    asked_first = list(asked.mine.values())[:_PROMPTS]
    return list(parts.rollout.generate([_beginning(request) for request in asked_first]))


def compare(parts: Parts, groups: Sequence[RolloutGroup], *, step: int) -> dict[str, float]:
    """Let the trainer, which must have the same weights, compute these tokens too; gives the metrics. Called by all
    ranks together. Raises `RolloutError` where more than `rollout.max_gap_nats` is between the two."""
    recipe = parts.plan.recipe
    space = one_space(parts.ranks.gather({group.logprob_space for group in groups}))
    reserved_ids = parts.prepared.reserved_ids
    compared = [train_group(group, [False] * len(group.completions), reserved_ids) for group in groups]
    batch = batch_of(recipe, compared, space, step=step)
    stats = parts.trainer.logprobs(batch, "policy")
    mean, largest = check_sampler_gap(batch, stats, recipe.rollout.max_gap_nats, parts.ranks)
    return {"sampler/fresh_gap_mean": mean, "sampler/fresh_gap_max": largest}


def _beginning(request: RolloutRequest) -> RolloutRequest:
    params = replace(request.params, max_tokens=min(_TOKENS, request.params.max_tokens))
    return replace(request, n=min(_COMPLETIONS, request.n), params=params)
