"""Which attention a Hugging Face model's text layers use, and whether they use any other way to look back.

transformers looks the function up by name at every call, in a registry that `AttentionInterface.register` fills. A name
that has no mask function beside it gets no mask: what a token sees is then the function's own to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

__all__ = ["attention_named", "has_plain_layers", "has_windows"]


@contextmanager
def attention_named(text_config: Any, name: str) -> Iterator[None]:
    """Layers with this config attend by the function of this name inside."""
    chosen = text_config._attn_implementation
    text_config._attn_implementation = name
    try:
        yield
    finally:
        text_config._attn_implementation = chosen


def has_plain_layers(model: Any) -> bool:
    """Whether every layer keeps keys and values of all tokens, or of those in a window: none has a state of its own."""
    layers = DynamicCache(config=model.config).layers
    return bool(layers) and all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)


def has_windows(model: Any) -> bool:
    """Whether some layers only see the tokens in a window before each one."""
    return any(type(layer) is DynamicSlidingWindowLayer for layer in DynamicCache(config=model.config).layers)
