"""Which completions of a batch are forwarded, and for what.

It does not change the gradient: what is left out has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.errors import TrainerError
from grpo_core.objective.loss import acts_without_advantage
from grpo_core.recipe.schema import ObjectiveSettings
from grpo_core.types import ImageRef, TrainBatch, TrainMember

__all__ = ["DUMMY", "Row", "rows_for_loss", "rows_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One completion with its prompt."""

    group: int
    """Its group's index in the batch."""
    index: int
    """Its own among the members of the group."""
    prompt_ids: tuple[int, ...]
    """The prompt's tokens; at least one."""
    member: TrainMember
    """The completion; at least one token."""
    images: tuple[ImageRef, ...] = ()
    """The prompt's."""

    @property
    def length(self) -> int:
        """How many tokens are forwarded for it."""
        return len(self.prompt_ids) + len(self.member.token_ids) - 1


DUMMY = Row(
    group=-1,
    index=-1,
    prompt_ids=(0,),
    member=TrainMember(
        token_ids=(0,),
        advantage=0.0,
        sampling_logprobs=(0.0,),
        in_loss=False,
        reference_logprobs=(0.0,),
    ),
)
"""Forwarded where there is nothing to forward, with a loss of 0: every rank runs the same collectives. It has
everything that a loss may ask for."""


def rows_of(batch: TrainBatch) -> list[Row]:
    """Every completion that has a token, in the order of groups and members."""
    rows = []
    for g, group in enumerate(batch.groups):
        if not group.prompt_ids:
            raise TrainerError(
                f"step {batch.step}: a prompt has no tokens, so nothing predicts the first token of its completions",
                hint="look at the prompt with `grpoctl datasets preview`; a BOS token is enough",
            )
        rows += [
            Row(group=g, index=m, prompt_ids=group.prompt_ids, member=member, images=group.images)
            for m, member in enumerate(group.members)
            if member.token_ids
        ]
    return rows


def rows_for_loss(batch: TrainBatch, objective: ObjectiveSettings, *, routed: bool = False) -> tuple[list[Row], int]:
    """The rows whose gradient can be other than 0, and how many rows in the loss were left out; these stay in the
    denominators, which the batch carries. `routed`: routers have a loss of their own, on all of them."""
    in_loss = [row for row in rows_of(batch) if row.member.in_loss]
    if routed or acts_without_advantage(objective):
        return in_loss, 0
    kept = [row for row in in_loss if row.member.advantage != 0.0]
    return kept, len(in_loss) - len(kept)
