"""Other weights for a vLLM model in place, in such a way that what is computed is theirs.

vLLM reloads layer by layer and keeps one layer twice at most. A reload that breaks off is undone as far as it can be:
layers that had not come keep their old weights, so that the next update finds a model it can load into.

Place in the flow: worker → **reload** → vLLM.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload
from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info

__all__ = ["take_over"]

Stream = Iterable[tuple[str, Tensor]]
_EMPTY = ("RotaryEmbedding", "ParallelLMHead", "FusedMMInputNorm")
"""What is computed from the configuration, and a head that is tied to the embedding."""


def take_over(model: Any, stream: Stream, reload_weights: Callable[..., None], model_config: Any) -> None:
    """Load a stream of every weight under its Hugging Face name; `reload_weights` is the worker's method."""
    weights = iter(stream)
    # What cannot be read at all must not leave a model half loaded.
    first = [item for item in (next(weights, None),) if item is not None]
    with _expecting_empty_layers():
        try:
            reload_weights(weights_iterator=_chain(first, weights))
        except BaseException:
            _break_off(model, model_config)
            raise
    _pack_heads(model)


def _chain(first: list[tuple[str, Tensor]], rest: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    yield from first
    first.clear()
    yield from rest


@contextmanager
def _expecting_empty_layers() -> Iterator[None]:
    """vLLM warns of layers for which nothing came. Some never have anything of their own."""
    logger = logging.getLogger(finalize_layerwise_reload.__module__)

    def is_news(record: logging.LogRecord) -> bool:
        layer, _, what = record.getMessage().partition(": ")
        return not (what == "Failed to load weights" and layer.endswith(_EMPTY))

    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


def _break_off(model: Any, model_config: Any) -> None:
    """End a reload that failed: layers that are not complete get the weights back that they had."""
    for layer in model.modules():
        info = get_layerwise_info(layer)
        if info.can_load():
            info.loaded_weights.clear()
            info.load_numel = 0
    finalize_layerwise_reload(model, model_config)


def _pack_heads(model: Any) -> None:
    """Pack the output head anew. On a CPU vLLM computes with a packed copy of it, which a reload leaves as it was where
    the head is tied to the embedding: the weights are right then, and what is computed is not."""
    for module in model.modules():
        weight, method = getattr(module, "weight", None), getattr(module, "quant_method", None)
        if hasattr(module, "cpu_linear") and method is not None and weight is not None and weight.numel() > 0:
            method.process_weights_after_loading(module)
