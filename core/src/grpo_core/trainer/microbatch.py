"""Some completions of an update as tensors: what the model is given, and what the loss is.

Shapes: B completions, T tokens of the longest (prompt and completion), C tokens of the longest completion, N completion
tokens of all of them, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from grpo_core.objective.logprobs import TokenLogprobs
from grpo_core.objective.loss import TokenInputs
from grpo_core.trainer.images import RoundImages
from grpo_core.trainer.layout import ForwardInputs, forward_inputs
from grpo_core.trainer.rows import Row
from grpo_core.types import TrainMember

__all__ = ["MicroBatch", "collate"]


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


def collate(
    rows: Sequence[Row], device: torch.device, images: RoundImages | None = None, *, shared: bool = False
) -> MicroBatch:
    """Make the tensors of a micro-batch; `images` are those of its round, None for a model that reads text only.
    `shared`: rows of one group, which are neighbours, have their prompt once."""
    members = [row.member for row in rows]
    tokens_BC = _padded([torch.ones(len(member.token_ids), dtype=torch.bool) for member in members])
    in_loss_B1 = torch.tensor([[member.in_loss] for member in members])

    def optional(read: Callable[[TrainMember], Sequence[float] | None], dtype: torch.dtype) -> Tensor | None:
        values = [read(member) for member in members]
        present = [torch.tensor(value, dtype=dtype) for value in values if value is not None]
        return _padded(present).to(device) if len(present) == len(members) else None

    return MicroBatch(
        rows=tuple(rows),
        inputs=forward_inputs(rows, device, images, shared=shared),
        tokens_BC=tokens_BC.to(device),
        mask_BC=(tokens_BC & in_loss_B1).to(device),
        advantages_B=torch.tensor([member.advantage for member in members], device=device),
        sampling_logprobs_BC=_padded([torch.tensor(member.sampling_logprobs) for member in members]).to(device),
        old_logprobs_BC=optional(lambda member: member.old_logprobs, torch.float32),
        reference_logprobs_BC=optional(lambda member: member.reference_logprobs, torch.float32),
        correction_logprobs_BC=optional(lambda member: member.correction_logprobs, torch.float32),
        policy_mask_BC=optional(lambda member: member.policy_mask, torch.bool),
    )


def _padded(rows: Sequence[Tensor]) -> Tensor:
    return pad_sequence(list(rows), batch_first=True)
