"""The policy as one module: token ids in, log-probabilities of the completions' tokens out.

Backbone, choice of hidden states, head and chunked log-probabilities all run **inside** `forward`, so that whatever
wraps the module (DDP, FSDP, ZeRO) sees every use of a weight: outside, DDP would skip synchronisation without a word.
It does not know losses, optimisers or batches.

No attention mask: padding is on the right, and a causal model never looks there.

Shapes: B sequences, T tokens, N picked tokens, H hidden, V vocabulary.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from grpo_core.errors import TrainerError
from grpo_core.model.head import Head, backbone_of, head_of
from grpo_core.objective.logprobs import TokenLogprobs, chunked_logprobs
from grpo_core.trainer.microbatch import ForwardInputs

__all__ = ["PolicyModule"]

CHECKED_TOKENS = 64
MAX_MEAN_GAP_NATS = {torch.float32: 1e-3, torch.float64: 1e-6}
MAX_MEAN_GAP_LOW_PRECISION_NATS = 0.05
CHUNK_LOGITS = 2**26

_log = logging.getLogger(__name__)


class PolicyModule(nn.Module):
    """Wraps a Hugging Face causal language model.

    Its first call compares the chunked path with the model's own logits on one sequence. Where they differ, as for a
    family that treats its logits in a way unknown to `head_of`, it warns and uses the model's own forward from then
    on, one sequence at a time. `path` says which one runs.
    """

    def __init__(
        self,
        model: Any,
        *,
        chunk_tokens: int | None = None,
        agreed: Callable[[bool], bool] = lambda agrees: agrees,
        may_be_plain: bool = True,
        project: Head | None = None,
    ) -> None:
        """`agreed` says whether all ranks, which make their first call together, found what this one did. The plain
        way takes as many calls as there are sequences, which ranks that gather weights at every call cannot differ
        in: where it may not be, it is an error. `project` is that of `head_of`."""
        super().__init__()
        self.model = model
        self.path: Literal["unchecked", "chunked", "plain"] = "unchecked"
        self._head = head_of(model, project)
        self._agreed = agreed
        self._may_be_plain = may_be_plain
        self._chunk_tokens = chunk_tokens or max(1, CHUNK_LOGITS // model.config.get_text_config().vocab_size)

    def forward(
        self, inputs: ForwardInputs, *, temperature: float, with_entropy_grad: bool = False, raw: bool = False
    ) -> TokenLogprobs:
        """Numbers of the N picked tokens under softmax(logits / temperature), as `chunked_logprobs` gives them."""
        if self.path == "plain":
            return self._plain(inputs, temperature, with_entropy_grad, raw)
        computed = self._chunked(inputs, temperature, with_entropy_grad, raw)
        if self.path == "chunked" or self._agreed(self._agrees(inputs, temperature, computed)):
            self.path = "chunked"
            return computed
        if not self._may_be_plain:
            raise TrainerError(
                f"{type(self.model).__name__} needs its own forward for its logits, sequence by sequence, and weights "
                "that are spread over ranks must be forwarded alike on all of them",
                hint="train it with all weights on every rank (torch trainer: trainer.options.sharding none)",
            )
        self.path = "plain"
        return self._plain(inputs, temperature, with_entropy_grad, raw)

    def _chunked(self, inputs: ForwardInputs, temperature: float, with_entropy_grad: bool, raw: bool) -> TokenLogprobs:
        hidden_BTH = self._call(backbone_of(self.model), inputs.input_ids_BT, inputs.position_ids_BT).last_hidden_state
        return chunked_logprobs(
            hidden_BTH.flatten(0, 1).index_select(0, inputs.picked_N),
            inputs.targets_N,
            self._head,
            temperature=temperature,
            chunk_tokens=self._chunk_tokens,
            with_entropy_grad=with_entropy_grad,
            raw=raw,
        )

    def _plain(self, inputs: ForwardInputs, temperature: float, with_entropy_grad: bool, raw: bool) -> TokenLogprobs:
        def numbers(ids_1T: Tensor, columns_N: Tensor, targets_N: Tensor) -> TokenLogprobs:
            return chunked_logprobs(
                self._plain_logits(ids_1T, columns_N),
                targets_N,
                lambda logits_CV: logits_CV,
                temperature=temperature,
                chunk_tokens=len(targets_N),
                with_entropy_grad=with_entropy_grad,
                raw=raw,
            )

        rows = [
            checkpoint(numbers, row.ids_1T, row.columns_N, row.targets_N, use_reentrant=False)
            for row in _sequences(inputs)
        ]
        logprobs, entropies, raws = zip(*rows, strict=True)
        return TokenLogprobs(torch.cat(logprobs), torch.cat(entropies), torch.cat(raws) if raw else None)

    def _plain_logits(self, ids_1T: Tensor, columns_N: Tensor) -> Tensor:
        position_ids_1T = torch.arange(ids_1T.shape[1], device=ids_1T.device)[None]
        if "logits_to_keep" in _parameters(self.model):
            kept: Tensor = self._call(self.model, ids_1T, position_ids_1T, logits_to_keep=columns_N).logits[0]
            return kept
        logits_NV: Tensor = self._call(self.model, ids_1T, position_ids_1T).logits[0, columns_N]
        return logits_NV

    @staticmethod
    def _call(module: nn.Module, ids_BT: Tensor, position_ids_BT: Tensor, **more: Any) -> Any:
        # Some families (Bloom, MPT) have no positions to be given; theirs follow from the order of the tokens.
        positions = {"position_ids": position_ids_BT} if "position_ids" in _parameters(module) else {}
        return module(ids_BT, **positions, use_cache=False, **more)

    @torch.no_grad()
    def _agrees(self, inputs: ForwardInputs, temperature: float, computed: TokenLogprobs) -> bool:
        """Whether the shortest sequence, unpadded through the model's own forward, has the same log-probabilities."""
        sequence = min(_sequences(inputs), key=lambda sequence: sequence.ids_1T.shape[1]).cut(CHECKED_TOKENS)
        logits_NV = self._plain_logits(sequence.ids_1T, sequence.columns_N).float() / temperature
        plain_N = logits_NV.log_softmax(-1).gather(-1, sequence.targets_N[:, None])[:, 0]
        gap = (plain_N - computed.logprobs_N[sequence.indices_N]).abs().mean().item()
        name = type(self.model).__name__
        limit = MAX_MEAN_GAP_NATS.get(self.model.dtype, MAX_MEAN_GAP_LOW_PRECISION_NATS)
        # Weights that are not finite are the update's to report: no path is right about them.
        agrees = gap <= limit or not plain_N.isfinite().all()
        if agrees:
            _log.info("%s: chunked log-probabilities, within %.1e nats of the plain forward", name, gap)
        else:
            _log.warning(
                "%s: chunked log-probabilities are %.3g nats from the model's own forward (at most %.3g was expected). "
                "Its logits are used instead: slower, and with the whole vocabulary for one sequence at a time",
                name,
                gap,
                limit,
            )
        return agrees


class _Sequence(NamedTuple):
    """One row of a micro-batch without its padding."""

    ids_1T: Tensor
    columns_N: Tensor
    """Positions that predict its completion's tokens."""
    targets_N: Tensor
    indices_N: Tensor
    """Where these are among the N of the micro-batch."""

    def cut(self, tokens: int) -> _Sequence:
        """Only the first so many tokens of the completion; a causal model gives them the same numbers."""
        columns_N = self.columns_N[:tokens]
        ids_1T = self.ids_1T[:, : int(columns_N[-1]) + 1]
        return _Sequence(ids_1T, columns_N, self.targets_N[:tokens], self.indices_N[:tokens])


def _sequences(inputs: ForwardInputs) -> Iterator[_Sequence]:
    T = inputs.input_ids_BT.shape[1]
    rows_N, columns_N = inputs.picked_N // T, inputs.picked_N % T
    for b, ids_T in enumerate(inputs.input_ids_BT):
        indices_N = (rows_N == b).nonzero()[:, 0]
        own_N = columns_N[indices_N]
        yield _Sequence(ids_T[None, : int(own_N[-1]) + 1], own_N, inputs.targets_N[indices_N], indices_N)


def _parameters(module: nn.Module) -> frozenset[str]:
    return frozenset(inspect.signature(module.forward).parameters)
