"""The `transformers` rollout backend: completions from the trainer's own module, or from a copy that it streams.

`requests.py` says what can be asked, `wave.py` is the decode loop, `choose.py` finds out how the model decodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from grpo_core.backends import BackendContext
from grpo_core.errors import RolloutError
from grpo_core.model.load import context_length, load_model
from grpo_core.model.tokenizer import end_token_ids, load_tokenizer
from grpo_core.model.vision import load_vision
from grpo_core.rollout.choose import Ways, slowest_way
from grpo_core.rollout.forward import decoding
from grpo_core.rollout.options import TransformersRolloutOptions
from grpo_core.rollout.prompts import Prompts, read_prompts
from grpo_core.rollout.requests import check_requests
from grpo_core.rollout.stop import CompletionText
from grpo_core.rollout.wave import Wave, plan_waves
from grpo_core.rollout.weights import copy_weights
from grpo_core.types import RolloutGroup, RolloutRequest

__all__ = ["TransformersRollout", "make"]

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def make(options: TransformersRolloutOptions, context: BackendContext) -> TransformersRollout:
    """Load the tokenizer; weights come later, by `share` or `load_weights`."""
    return TransformersRollout(options, context)


class TransformersRollout:
    """A `RolloutBackend` that also `SharesWeights`."""

    def __init__(self, options: TransformersRolloutOptions, context: BackendContext) -> None:
        self._options = options
        self._context = context
        self._device = _device(options.device)
        tokenizer = load_tokenizer(context.model)
        self._text = CompletionText(tokenizer, end_token_ids(tokenizer, context.model))
        self._vision = load_vision(context.model)
        self._context_tokens = context_length(context.model)
        self._model: Any = None
        self._own_copy: Any = None
        self._policy_version = 0
        self._ways: Ways | None = None
        self._way: int | None = None
        self._has_checked_images = False

    def share(self, module: torch.nn.Module, version: int) -> None:
        """Generate with the trainer's live module; nothing is copied, and its state stays as it is."""
        self._use(module, version)

    def load_weights(self, stream: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Copy the trainer's weights into a model of this backend's own, loaded when the first ones come."""
        if self._own_copy is None:
            dtype = _DTYPES[self._context.trainer.precision]
            self._own_copy = load_model(self._context.model, dtype).to(self._device)
        copy_weights(self._own_copy, stream)
        self._use(self._own_copy, version)

    def generate(self, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
        """Yield each group as soon as its completions are done; raises `RolloutError` before the first for requests
        that cannot be answered."""
        if self._model is None or self._ways is None:
            raise RolloutError("there are no weights yet", hint="call share or load_weights before generate")
        check_requests(
            requests,
            vocab_size=self._model.get_input_embeddings().weight.shape[0],
            context_tokens=self._context_tokens,
            reads_images=self._vision is not None,
        )
        return self._groups(self._ways, requests)

    def close(self) -> None:
        """Forget the weights."""
        self._model = self._own_copy = self._ways = self._way = None

    def _use(self, model: Any, version: int) -> None:
        if model is not self._model:
            self._model, self._way, self._has_checked_images = model, None, False
            self._ways = Ways(model, prefill_tokens=self._options.prefill_tokens)
        self._policy_version = version
        self._way = slowest_way(self._way, self._context.world_size)

    def _groups(self, ways: Ways, requests: Sequence[RolloutRequest]) -> Iterator[RolloutGroup]:
        model, version = self._model, self._policy_version
        for part in plan_waves(requests, self._options.max_sequences):
            with decoding(model):
                prompts = read_prompts(model, part, self._vision)
            decoder = self._decoder_for(ways, prompts, part[0].params.max_tokens)
            never = frozenset() if self._vision is None else self._vision.reserved_ids
            wave = Wave(part, decoder, self._text, version, prompts=prompts, never=never)
            while not wave.done:
                # Never around a yield: whoever takes the group must not find itself without gradients.
                with decoding(model):
                    groups = wave.advance()
                yield from groups

    def _decoder_for(self, ways: Ways, prompts: Prompts, max_tokens: int) -> Any:
        has_images = any(prompts.pixels)
        # Waves go by length, so the first ones may be texts alone: those say nothing about images.
        if self._way is None or (has_images and not self._has_checked_images):
            found = ways.choose(prompts)
            self._way = found if self._way is None else max(self._way, found)
            self._has_checked_images = has_images
        return ways.make(self._way)(max_tokens)


def _device(choice: str) -> torch.device:
    if choice == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if choice == "cuda" and not torch.cuda.is_available():
        raise RolloutError(
            "rollout.options.device is cuda, and PyTorch sees no GPU here",
            hint="leave it at auto, or install a build of PyTorch for this machine's driver",
        )
    return torch.device(choice)
