"""The policy as one module: token ids in, log-probabilities of the completions' tokens out.

Backbone, choice of hidden states, head and chunked log-probabilities all run **inside** `forward`, and so does the
vision tower, in calls of its own, so that whatever wraps the module (DDP, FSDP, ZeRO) sees every use of a weight:
outside, DDP would skip synchronisation without a word.
It does not know losses, optimisers or batches.

No attention mask: padding is on the right, and a causal model never looks there; where prompts are shared, attention
itself knows which tokens belong together.

Shapes: B sequences, T tokens, N picked tokens, H hidden, V vocabulary.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from grpo_core.errors import TrainerError
from grpo_core.model.head import Head, backbone_of, head_of
from grpo_core.model.image_features import position_rows
from grpo_core.model.routers import RouterSums, router_arguments, router_loss_of
from grpo_core.model.vision import PixelInputs
from grpo_core.objective.logprobs import TokenLogprobs, chunked_logprobs
from grpo_core.recipe.memory import chunk_tokens as default_chunk
from grpo_core.trainer.images import Opaque
from grpo_core.trainer.layout import ForwardInputs
from grpo_core.trainer.shared_attention import Sharing, sharing

__all__ = ["MAX_MEAN_GAP_LOW_PRECISION_NATS", "MAX_MEAN_GAP_NATS", "PolicyModule", "parameters_of"]

CHECKED_TOKENS = 64
MAX_MEAN_GAP_NATS = {torch.float32: 1e-3, torch.float64: 1e-6}
MAX_MEAN_GAP_LOW_PRECISION_NATS = 0.05

_log = logging.getLogger(__name__)


class PolicyModule(nn.Module):
    """Wraps a Hugging Face causal language model.

    Its first call compares the chunked path with the model's own logits on one sequence. Where they differ, as for a
    family that treats its logits in a way unknown to `head_of`, it warns and uses the model's own forward from then
    on, one sequence at a time. `path` says which one runs. The first call with images compares again, with the model's
    own forward that reads the pixels itself.
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
        self._is_checked_with_images = False
        self.router_loss = router_loss_of(model)
        self._head = head_of(model, project)
        self._agreed = agreed
        self._may_be_plain = may_be_plain
        self._chunk_tokens = chunk_tokens or default_chunk(
            model.config.get_text_config().vocab_size, model.dtype.itemsize
        )

    def forward(
        self,
        inputs: ForwardInputs | Opaque[Callable[[PolicyModule], Any]],
        *,
        temperature: float = 1.0,
        with_entropy_grad: bool = False,
        raw: bool = False,
        routed: bool = False,
    ) -> TokenLogprobs | tuple[TokenLogprobs, RouterSums] | Opaque[Any]:
        """Numbers of the N picked tokens under softmax(logits / temperature), as `chunked_logprobs` gives them; where
        `routed`, for a model with a `router_loss`, also what its routers did with those in the loss. Something to call
        is called with this module: other work that uses the weights."""
        if isinstance(inputs, Opaque):
            return Opaque(inputs.value(self))
        asked = _Asked(temperature, with_entropy_grad, raw, routed)
        with_images = inputs.images is not None
        if self.path == "unchecked" or (with_images and not self._is_checked_with_images):
            computed, sums = self._first(inputs, asked)
            self._is_checked_with_images |= with_images
        else:
            computed, sums = self._by(self.path)(inputs, asked)
        return computed if sums is None else (computed, sums)

    def logprobs(self, inputs: ForwardInputs, temperature: float) -> tuple[Tensor, Sharing]:
        """[N] The log-probabilities alone, by the chunked path, and what attention to shared prompts met; for use
        inside `forward`."""
        state = self._sharing(inputs)
        return self._chunked(inputs, _Asked(temperature, False, False, False), state)[0].logprobs_N, state

    def _by(self, path: str) -> Callable[[ForwardInputs, _Asked], _Numbers]:
        return self._chunked if path == "chunked" else self._plain

    def _first(self, inputs: ForwardInputs, asked: _Asked) -> _Numbers:
        """The numbers by the way that the check decides for."""
        if self.path != "plain":
            numbers = self._chunked(inputs, asked)
            if self._agreed(self._agrees(inputs, asked.temperature, numbers[0], "chunked")):
                self.path = "chunked"
                return numbers
        if not self._may_be_plain:
            raise TrainerError(
                f"{type(self.model).__name__} needs its own forward for its logits, sequence by sequence, and weights "
                "that are spread over ranks must be forwarded alike on all of them",
                hint="train it with all weights on every rank (torch trainer: trainer.options.sharding none)",
            )
        self.path = "plain"
        numbers = self._plain(inputs, asked)
        if inputs.images and not self._agreed(self._agrees(inputs, asked.temperature, numbers[0], "plain")):
            raise TrainerError(
                f"{type(self.model).__name__} does not make of images that are encoded once what its own forward makes "
                "of their pixels",
                hint="train a model of another family; docs/vision.md names those that are tested",
            )
        return numbers

    def _chunked(self, inputs: ForwardInputs, asked: _Asked, state: Sharing | None = None) -> _Numbers:
        with sharing(state or self._sharing(inputs)) if inputs.layout.value.is_shared else nullcontext():
            output = self._call(
                backbone_of(self.model),
                inputs.input_ids_BT,
                inputs.position_ids,
                routed=asked.routed,
                **inputs.image_arguments,
            )
        computed = chunked_logprobs(
            output.last_hidden_state.flatten(0, 1).index_select(0, inputs.picked_N),
            inputs.targets_N,
            self._head,
            temperature=asked.temperature,
            chunk_tokens=self._chunk_tokens,
            with_entropy_grad=asked.with_entropy_grad,
            raw=asked.raw,
        )
        if not asked.routed:
            return computed, None
        times_T = torch.zeros(inputs.input_ids_BT.numel(), device=inputs.input_ids_BT.device)
        # A shared prompt's last token predicts the first one of each completion.
        times_T.index_add_(0, inputs.picked_N, inputs.counted_N.to(times_T.dtype))
        return computed, self._router_sums(output, times_T)

    def _sharing(self, inputs: ForwardInputs) -> Sharing:
        return Sharing(self.model.config.get_text_config(), inputs.layout.value)

    def _plain(self, inputs: ForwardInputs, asked: _Asked) -> _Numbers:
        def numbers(row: _Sequence) -> _Numbers:
            output, logits_NV = self._plain_forward(row, row.arguments, routed=asked.routed)
            computed = chunked_logprobs(
                logits_NV,
                row.targets_N,
                lambda logits_CV: logits_CV,
                temperature=asked.temperature,
                chunk_tokens=len(row.targets_N),
                with_entropy_grad=asked.with_entropy_grad,
                raw=asked.raw,
            )
            if not asked.routed:
                return computed, None
            times_T = torch.zeros(row.ids_1T.shape[1], device=row.ids_1T.device)
            times_T[row.columns_N] = inputs.counted_N[row.indices_N].to(times_T.dtype)
            return computed, self._router_sums(output, times_T)

        rows, sums = zip(*(checkpoint(numbers, row, use_reentrant=False) for row in _sequences(inputs)), strict=True)
        logprobs, entropies, raws = zip(*rows, strict=True)
        computed = TokenLogprobs(torch.cat(logprobs), torch.cat(entropies), torch.cat(raws) if asked.raw else None)
        if not asked.routed:
            return computed, None
        probabilities, chosen = zip(*sums, strict=True)
        return computed, RouterSums(torch.stack(probabilities).sum(0), torch.stack(chosen).sum(0))

    def _router_sums(self, output: Any, times_T: Tensor) -> RouterSums:
        if self.router_loss is None:
            raise TrainerError(
                f"{type(self.model).__name__} has no loss for its routers", hint="call the policy without `routed`"
            )
        return self.router_loss.sums(output.router_logits, times_T)

    def _plain_forward(
        self, row: _Sequence, arguments: Mapping[str, Any], *, own_positions: bool = False, routed: bool = False
    ) -> tuple[Any, Tensor]:
        """The model's own output, and its logits [N, V] at the row's columns."""
        keeps = "logits_to_keep" in parameters_of(self.model)
        output = self._call(
            self.model,
            row.ids_1T,
            None if own_positions else row.position_ids,
            routed=routed,
            **({"logits_to_keep": row.columns_N} if keeps else {}),
            **arguments,
        )
        return output, output.logits[0] if keeps else output.logits[0, row.columns_N]

    def _pixel_arguments(self, row: _Sequence) -> dict[str, Any]:
        """Of a forward that encodes the row's images itself."""
        if row.pixels is None:
            return {}
        ids_1T = row.ids_1T
        types = {"mm_token_type_ids": (ids_1T == self.model.config.image_token_id).int()}
        pixels = {name: value.to(ids_1T.device) for name, value in row.pixels.tensors.items()}
        return {**pixels, **(types if position_rows(self.model) > 1 else {})}

    @staticmethod
    def _call(module: nn.Module, ids_BT: Tensor, position_ids: Tensor | None, *, routed: bool, **more: Any) -> Any:
        # Some families (Bloom, MPT) have no positions to be given; theirs follow from the order of the tokens.
        given = position_ids is not None and "position_ids" in parameters_of(module)
        positions = {"position_ids": position_ids} if given else {}
        return module(ids_BT, **positions, use_cache=False, **router_arguments(module, asked=routed), **more)

    @torch.no_grad()
    def _agrees(self, inputs: ForwardInputs, temperature: float, computed: TokenLogprobs, path: str) -> bool:
        """Whether the shortest sequence, unpadded through the model's own forward, has the same log-probabilities. One
        with images is seen by that forward as if nothing was known of them: it encodes them, and counts positions."""
        sequence = min(_sequences(inputs), key=lambda sequence: sequence.ids_1T.shape[1]).cut(CHECKED_TOKENS)
        _, logits_NV = self._plain_forward(
            sequence, self._pixel_arguments(sequence), own_positions=sequence.pixels is not None
        )
        plain_N = (logits_NV.float() / temperature).log_softmax(-1).gather(-1, sequence.targets_N[:, None])[:, 0]
        gap = (plain_N - computed.logprobs_N[sequence.indices_N]).abs().mean().item()
        name = type(self.model).__name__
        limit = MAX_MEAN_GAP_NATS.get(self.model.dtype, MAX_MEAN_GAP_LOW_PRECISION_NATS)
        # Weights that are not finite are the update's to report: no path is right about them.
        agrees = gap <= limit or not plain_N.isfinite().all()
        if agrees:
            _log.info("%s: %s log-probabilities, within %.1e nats of the plain forward", name, path, gap)
        else:
            _log.warning(
                "%s: %s log-probabilities are %.3g nats from the model's own forward (at most %.3g was expected). "
                "Its logits are used instead: slower, and with the whole vocabulary for one sequence at a time",
                name,
                path,
                gap,
                limit,
            )
        return agrees


class _Asked(NamedTuple):
    """What a call of the policy asks for."""

    temperature: float
    with_entropy_grad: bool
    raw: bool
    routed: bool


_Numbers: TypeAlias = tuple[TokenLogprobs, RouterSums | None]
"""Of the picked tokens; and of the routers, where they were asked for."""


class _Sequence(NamedTuple):
    """One completion of a micro-batch with its prompt, alone."""

    ids_1T: Tensor
    columns_N: Tensor
    """Positions that predict its completion's tokens."""
    targets_N: Tensor
    indices_N: Tensor
    """Where these are among the N of the micro-batch."""
    position_ids: Tensor
    """[1, T], or [3, 1, T] for M-RoPE."""
    arguments: Mapping[str, Any]
    """Of its forward: its images, encoded."""
    pixels: PixelInputs | None
    """Its images, not encoded; None: it has none."""

    def cut(self, tokens: int) -> _Sequence:
        """Only the first so many tokens of the completion; a causal model gives them the same numbers."""
        columns_N = self.columns_N[:tokens]
        ids_1T = self.ids_1T[:, : int(columns_N[-1]) + 1]
        return self._replace(
            ids_1T=ids_1T,
            columns_N=columns_N,
            targets_N=self.targets_N[:tokens],
            indices_N=self.indices_N[:tokens],
            position_ids=self.position_ids[..., : ids_1T.shape[1]],
        )


def _sequences(inputs: ForwardInputs) -> Iterator[_Sequence]:
    ids_T = inputs.input_ids_BT.flatten()
    positions_T = inputs.position_ids.flatten(-2)
    device, start = ids_T.device, 0
    images = inputs.images.value if inputs.images else None
    for b, span in enumerate(inputs.layout.value.spans):
        places_T = torch.tensor(span.tokens, device=device)
        indices_N = torch.arange(start, start + span.own_tokens + 1, device=device)
        start += len(indices_N)
        yield _Sequence(
            ids_1T=ids_T[places_T][None],
            columns_N=torch.arange(span.prompt_tokens - 1, span.length, device=device),
            targets_N=inputs.targets_N[indices_N],
            indices_N=indices_N,
            position_ids=positions_T[..., None, places_T],
            arguments={} if images is None else images.features.arguments([images.places[b]]),
            pixels=None if images is None else images.pixels[images.places[b]],
        )


def parameters_of(module: nn.Module) -> frozenset[str]:
    """The names of what its forward takes."""
    return frozenset(inspect.signature(module.forward).parameters)
