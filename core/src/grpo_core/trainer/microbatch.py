"""From the grouped batch of an update to padded micro-batches under a token budget.

The one place that decides how completions become tensors: which are forwarded, beside which others, in what layout.
It does not change the gradient, only how much padding is computed.

Shapes: B sequences, T tokens of the longest (prompt and completion), C tokens of the longest completion, N completion
tokens of all sequences, sequence after sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from grpo_core.errors import TrainerError
from grpo_core.objective.logprobs import TokenLogprobs
from grpo_core.objective.loss import TokenInputs, acts_without_advantage
from grpo_core.recipe.schema import ObjectiveSettings
from grpo_core.trainer.images import Opaque, RoundImages, RowImages
from grpo_core.types import ImageRef, TrainBatch, TrainMember

__all__ = ["DUMMY", "ForwardInputs", "MicroBatch", "Row", "collate", "pack", "rows_for_loss", "rows_of"]


class ForwardInputs(NamedTuple):
    """What the model is given, and which of its hidden states are wanted."""

    input_ids_BT: Tensor
    """Right-padded. The last token of a completion predicts nothing that counts, so it is not there."""
    position_ids: Tensor
    """[B, T] 0, 1, 2, … in each sequence; [3, B, T] for a model with M-RoPE, where images count by their sides."""
    picked_N: Tensor
    """Indices into the flattened [B*T] hidden states: those that predict a completion's tokens."""
    targets_N: Tensor
    """The completions' tokens."""
    counted_N: Tensor
    """bool: which of them are in the loss."""
    images: Opaque[RowImages] | None = None
    """None: no rank has an image in this micro-batch, nor in those of its round."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Some rows of an update as tensors."""

    rows: tuple[Row, ...]
    """[B] Where they come from."""
    inputs: ForwardInputs
    """For the model."""
    tokens_BC: Tensor
    """bool: where a completion has a token."""
    mask_BC: Tensor
    """bool: where that token is in the loss."""
    advantages_B: Tensor
    sampling_logprobs_BC: Tensor
    old_logprobs_BC: Tensor | None
    reference_logprobs_BC: Tensor | None
    correction_logprobs_BC: Tensor | None
    policy_mask_BC: Tensor | None

    @property
    def slots(self) -> int:
        """Tokens forwarded, padding included."""
        return self.inputs.input_ids_BT.numel()

    def loss_inputs(self, computed: TokenLogprobs) -> TokenInputs:
        """The numbers of the policy joined to those that came with the batch."""
        raw_N = computed.raw_logprobs_N
        correction_BC = self.correction_logprobs_BC
        if correction_BC is None and raw_N is not None:
            correction_BC = self.spread(raw_N)
        return TokenInputs(
            logprobs_BT=self.spread(computed.logprobs_N),
            sampling_logprobs_BT=self.sampling_logprobs_BC,
            entropies_BT=self.spread(computed.entropies_N),
            advantages_B=self.advantages_B,
            mask_BT=self.mask_BC,
            old_logprobs_BT=self.old_logprobs_BC,
            reference_logprobs_BT=self.reference_logprobs_BC,
            correction_logprobs_BT=correction_BC,
            policy_mask_BT=self.policy_mask_BC,
        )

    def spread(self, values_N: Tensor) -> Tensor:
        """[B, C] The values at their tokens, 0 elsewhere; differentiable."""
        zeros_BC = torch.zeros(self.tokens_BC.shape, dtype=values_N.dtype, device=values_N.device)
        return zeros_BC.masked_scatter(self.tokens_BC, values_N)


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


def pack(rows: Sequence[Row], budget_tokens: int) -> list[tuple[Row, ...]]:
    """Cut rows into micro-batches of at most `budget_tokens` padded tokens; a longer row goes alone.

    Longest first: neighbours are of like length, so padding is little, and what does not fit into memory fails at
    once. Always at least one micro-batch, of `DUMMY` when there are no rows.
    """
    packs: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: -row.length):
        if packs and (len(packs[-1]) + 1) * packs[-1][0].length <= budget_tokens:
            packs[-1].append(row)
        else:
            packs.append([row])
    return [tuple(pack) for pack in packs] or [(DUMMY,)]


def collate(rows: Sequence[Row], device: torch.device, images: RoundImages | None = None) -> MicroBatch:
    """Make the tensors of a micro-batch; `images` are those of its round, None for a model that reads text only."""
    members = [row.member for row in rows]
    tokens_BC = _padded([torch.ones(len(member.token_ids), dtype=torch.bool) for member in members])
    in_loss_B1 = torch.tensor([[member.in_loss] for member in members])

    def optional(read: Callable[[TrainMember], Sequence[float] | None], dtype: torch.dtype) -> Tensor | None:
        values = [read(member) for member in members]
        present = [torch.tensor(value, dtype=dtype) for value in values if value is not None]
        return _padded(present).to(device) if len(present) == len(members) else None

    return MicroBatch(
        rows=tuple(rows),
        inputs=_forward_inputs(rows, device, images),
        tokens_BC=tokens_BC.to(device),
        mask_BC=(tokens_BC & in_loss_B1).to(device),
        advantages_B=torch.tensor([member.advantage for member in members], device=device),
        sampling_logprobs_BC=_padded([torch.tensor(member.sampling_logprobs) for member in members]).to(device),
        old_logprobs_BC=optional(lambda member: member.old_logprobs, torch.float32),
        reference_logprobs_BC=optional(lambda member: member.reference_logprobs, torch.float32),
        correction_logprobs_BC=optional(lambda member: member.correction_logprobs, torch.float32),
        policy_mask_BC=optional(lambda member: member.policy_mask, torch.bool),
    )


def _forward_inputs(rows: Sequence[Row], device: torch.device, images: RoundImages | None) -> ForwardInputs:
    input_ids_BT = _padded([torch.tensor(row.prompt_ids + row.member.token_ids[:-1]) for row in rows])
    T = input_ids_BT.shape[1]
    first = [b * T + len(row.prompt_ids) - 1 for b, row in enumerate(rows)]
    picked = [torch.arange(start, start + len(row.member.token_ids)) for start, row in zip(first, rows, strict=True)]
    targets = [torch.tensor(row.member.token_ids) for row in rows]
    return ForwardInputs(
        input_ids_BT=input_ids_BT.to(device),
        position_ids=_position_ids(rows, T, images).to(device),
        picked_N=torch.cat(picked).to(device),
        targets_N=torch.cat(targets).to(device),
        counted_N=torch.cat(
            [torch.full_like(t, row.member.in_loss, dtype=torch.bool) for t, row in zip(targets, rows, strict=True)]
        ).to(device),
        images=None if images is None else images.of_rows([row.group for row in rows]),
    )


def _position_ids(rows: Sequence[Row], T: int, images: RoundImages | None) -> Tensor:
    if images is None:
        return torch.arange(T).expand(len(rows), T)
    # Padding is behind what counts, so it stands anywhere.
    positions_TRB = pad_sequence(
        [images.positions_of(row.group, len(row.prompt_ids), row.length).T for row in rows]
    ).transpose(1, 2)
    positions_RBT = positions_TRB.permute(1, 2, 0).contiguous()
    return positions_RBT if images.position_rows > 1 else positions_RBT[0]


def _padded(rows: Sequence[Tensor]) -> Tensor:
    return pad_sequence(list(rows), batch_first=True)
