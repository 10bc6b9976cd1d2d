"""Whether each prompt is forwarded once for all completions of its group: decided by comparing, on the first batch.

    rows of two groups → prompts once, and each row alone → log-probabilities, and gradients of the embeddings, compared

A model that looks back in another way than attention (states, convolutions), or whose attention has what
`shared_attention` does not know, is forwarded with a prompt for each completion, as any trainer would; so is one whose
numbers differ. It is the same for all ranks, and for the reference model too.

Shapes: T tokens of the shared row, N completion tokens, H hidden.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

import torch
from torch import Tensor

from grpo_core.errors import TrainerError
from grpo_core.model.attention import has_plain_layers, has_windows
from grpo_core.model.head import backbone_of
from grpo_core.recipe.schema import TrainerSettings
from grpo_core.trainer.images import ImageReader, Opaque
from grpo_core.trainer.layout import ForwardInputs, forward_inputs
from grpo_core.trainer.policy import MAX_MEAN_GAP_LOW_PRECISION_NATS, MAX_MEAN_GAP_NATS, PolicyModule, parameters_of
from grpo_core.trainer.rounds import shared_tokens
from grpo_core.trainer.rows import DUMMY, Row, rows_of
from grpo_core.trainer.shared_attention import Sharing
from grpo_core.trainer.spread import Spread
from grpo_core.types import TrainBatch

__all__ = ["SharedPrefix"]

CHECKED_ROWS = 4
CHECKED_TOKENS = 64
MAX_GRADIENT_ERROR = {torch.float32: 1e-3, torch.float64: 1e-6}
MAX_GRADIENT_ERROR_LOW_PRECISION = 0.2

_ATTENTION_LAYERS = {"full_attention", "sliding_attention"}

_log = logging.getLogger(__name__)


class SharedPrefix:
    """What was decided; asked before every pass."""

    def __init__(
        self,
        settings: TrainerSettings,
        policy: PolicyModule,
        spread: Spread,
        images: ImageReader | None,
        *,
        with_gradient: bool,
    ) -> None:
        """`policy` is what is trained, and `images` how it reads them. `with_gradient`: compare gradients too; not
        where a backward pass gathers weights. Raises `TrainerError` where sharing is required and the model's layers
        do not allow it."""
        self._setting, self._budget_tokens = settings.shared_prefix, settings.token_budget
        self._spread, self._images = spread, images
        self._name = type(policy.model).__name__
        self._with_gradient = with_gradient
        self._is_on = settings.shared_prefix != "off"
        self._checked: set[str] = set()
        if self._is_on and (reason := _unshareable(policy.model)):
            self._leave(reason)

    def decide(self, policy: Callable[..., Any], batch: TrainBatch) -> bool:
        """Whether prompts are shared in the passes over this batch; called on all ranks together.

        Compares with the first batch, and with the first one that has images; raises `TrainerError` where it is
        required and the numbers differ. `policy` is the trained one, or what wraps it.
        """
        if not self._is_on:
            return False
        images, spread = self._images, self._spread
        has_images = images is not None and not spread.agrees(not any(group.images for group in batch.groups))
        kind = "images" if has_images else "text"
        if kind in self._checked:
            return True
        comparison = _comparison(policy, batch, spread, self._budget_tokens, images if has_images else None)
        found: _Difference = policy(Opaque(replace(comparison, with_gradient=self._with_gradient))).value
        if spread.agrees(found.reason is None):
            self._checked.add(kind)
            _log.info("%s: prompts are forwarded once a group; %s", self._name, found)
        else:
            self._leave(found.reason or "another rank's numbers differ")
        return self._is_on

    def _leave(self, reason: str) -> None:
        self._is_on = False
        if self._setting == "require":
            raise TrainerError(
                f"trainer.shared_prefix is require, and {self._name} cannot share prompts: {reason}",
                hint="leave trainer.shared_prefix at auto: each completion is then forwarded with its own prompt",
            )
        _log.warning(
            "%s: each completion is forwarded with its own prompt, which costs more the longer prompts are: %s",
            self._name,
            reason,
        )


def _unshareable(model: Any) -> str | None:
    """Why a model's prompts cannot be shared, as far as it can be seen without a forward."""
    if not has_plain_layers(model):
        return "not all of its layers are attention over the tokens before"
    kinds = set(getattr(model.config.get_text_config(), "layer_types", None) or ()) - _ATTENTION_LAYERS
    if kinds:
        return f"it has layers of another kind: {', '.join(sorted(kinds))}"
    if "position_ids" not in parameters_of(backbone_of(model)):
        return "it takes no positions"
    return None


@dataclass(frozen=True, kw_only=True)
class _Difference:
    """How far the shared way is from the plain one."""

    nats: float
    """Mean of the log-probabilities' distances."""
    gradient: float | None
    """Of the embeddings: norm of the difference / norm; None: not compared."""
    reason: str | None
    """Why it is too much; None: it is not."""

    def __str__(self) -> str:
        gradient = "" if self.gradient is None else f", their gradients within {self.gradient:.1e}"
        return f"log-probabilities are within {self.nats:.1e} nats of those with a prompt each{gradient}"


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """Called with the policy, inside its `forward`."""

    shared: ForwardInputs
    """Some rows, prompts once."""
    alone: tuple[ForwardInputs, ...]
    """The same rows, one each; as many on every rank, so that the first ones may come again."""
    temperature: float
    with_gradient: bool = False

    def __call__(self, policy: PolicyModule) -> _Difference:
        layout = self.shared.layout.value
        with _embeddings(policy.model, self.with_gradient) as seen:
            logprobs_N, state = policy.logprobs(self.shared, self.temperature)
            weights_N = torch.arange(len(logprobs_N), device=logprobs_N.device).cos().to(logprobs_N.dtype)
            gradient_TH = _gradient(logprobs_N @ weights_N, seen)
        plain_N = torch.empty_like(logprobs_N)
        plain_TH = None if gradient_TH is None else torch.zeros_like(gradient_TH)
        start = 0
        for place, inputs in enumerate(self.alone):
            with _embeddings(policy.model, self.with_gradient) as seen:
                row_N, _ = policy.logprobs(inputs, self.temperature)
                if place >= len(layout.spans):
                    continue
                end = start + len(row_N)
                plain_N[start:end] = row_N.detach()
                found_TH = _gradient(row_N @ weights_N[start:end], seen)
                start = end
            if plain_TH is not None and found_TH is not None:
                places_T = torch.tensor(layout.spans[place].tokens, device=plain_TH.device)
                plain_TH.index_add_(0, places_T, found_TH)
        return _difference(policy.model, state, logprobs_N.detach(), plain_N, gradient_TH, plain_TH)


def _difference(
    model: Any,
    state: Sharing,
    shared_N: Tensor,
    plain_N: Tensor,
    gradient_TH: Tensor | None,
    plain_TH: Tensor | None,
) -> _Difference:
    nats = (shared_N - plain_N).abs().mean().item()
    gradient = None
    if gradient_TH is not None and plain_TH is not None:
        norm = plain_TH.float().norm()
        gradient = ((gradient_TH - plain_TH).float().norm() / norm).item() if norm > 0 else 0.0
    reason: str | None = None
    layers = model.config.get_text_config().num_hidden_layers
    if state.refused is not None:
        reason = f"its attention has {state.refused}"
    elif len(state.layers) != layers:
        reason = f"{len(state.layers)} of its {layers} layers attend through transformers' attention interface"
    elif has_windows(model) and not state.has_windows:
        reason = "it does not tell attention functions how wide its sliding windows are"
    # Weights that are not finite are the update's to report: no way is right about them.
    elif plain_N.isfinite().all() and not nats <= (limit := _limit(model, MAX_MEAN_GAP_NATS)):
        reason = f"log-probabilities with shared prompts are {nats:.3g} nats off (at most {limit:.3g} was expected)"
    elif gradient is not None and not gradient <= (limit := _limit(model, MAX_GRADIENT_ERROR)):
        reason = f"gradients with shared prompts are off by {gradient:.3g} of their norm (at most {limit:.3g} expected)"
    return _Difference(nats=nats, gradient=gradient, reason=reason)


def _limit(model: Any, limits: dict[torch.dtype, float]) -> float:
    low = MAX_MEAN_GAP_LOW_PRECISION_NATS if limits is MAX_MEAN_GAP_NATS else MAX_GRADIENT_ERROR_LOW_PRECISION
    return limits.get(model.dtype, low)


def _comparison(
    policy: Callable[..., Any], batch: TrainBatch, spread: Spread, budget_tokens: int, images: ImageReader | None
) -> _Comparison:
    """Two rows of each of two groups, those with the shortest prompts, while they fit; of groups with images where
    these are read."""
    rows = _some_rows(batch, budget_tokens, with_images=images is not None)
    encoded = None
    if images is not None:
        groups = {row.group: batch.groups[row.group] for row in rows}
        if not rows:
            rows, groups = [replace(DUMMY, prompt_ids=images.blank.prompt_ids)], {DUMMY.group: images.blank}
        with torch.no_grad():
            encoded = images.encode(policy, groups)
    rows = rows or [DUMMY]
    return _Comparison(
        shared=forward_inputs(rows, spread.device, encoded, shared=True),
        alone=tuple(forward_inputs([row], spread.device, encoded) for row in islice(cycle(rows), CHECKED_ROWS)),
        temperature=batch.temperature,
    )


def _some_rows(batch: TrainBatch, budget_tokens: int, *, with_images: bool) -> list[Row]:
    groups: dict[int, list[Row]] = {}
    for row in rows_of(batch):
        if bool(row.images) == with_images:
            groups.setdefault(row.group, []).append(_cut(row))
    first, second = [*sorted(groups.values(), key=lambda rows: len(rows[0].prompt_ids)), [], []][:2]
    rows = [*first[:2], *second[:2]]
    return rows if shared_tokens(rows) <= budget_tokens else first[:2]


def _cut(row: Row) -> Row:
    """A completion is as good when it is short, and many tokens at once cost memory."""
    member = replace(
        DUMMY.member,
        token_ids=row.member.token_ids[:CHECKED_TOKENS],
        sampling_logprobs=row.member.sampling_logprobs[:CHECKED_TOKENS],
    )
    return replace(row, member=member)


@contextmanager
def _embeddings(model: Any, with_gradient: bool) -> Iterator[list[Tensor]]:
    """What the model's embeddings give inside, each with a gradient to come."""
    seen: list[Tensor] = []

    def keep(module: Any, arguments: Any, output: Tensor) -> None:
        seen.append(output if output.requires_grad else output.requires_grad_())

    handle = model.get_input_embeddings().register_forward_hook(keep) if with_gradient else None
    try:
        with torch.set_grad_enabled(with_gradient):
            yield seen
    finally:
        if handle is not None:
            handle.remove()


def _gradient(value: Tensor, seen: Sequence[Tensor]) -> Tensor | None:
    """[T, H] That of the embeddings."""
    if not seen:
        return None
    (found,) = torch.autograd.grad(value, seen[-1])
    return found.flatten(0, 1)
