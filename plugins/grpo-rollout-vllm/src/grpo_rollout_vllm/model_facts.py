"""What tells one model's architecture from another's: what a run and its servers compare before any weight is sent."""

from __future__ import annotations

from typing import Any

__all__ = ["differences", "model_facts"]

_NAMES = (
    "model_type",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "tie_word_embeddings",
)


def model_facts(text_config: Any) -> dict[str, str | int | bool]:
    """Those facts of a Hugging Face text config that it has."""
    found = {name: getattr(text_config, name, None) for name in _NAMES}
    return {name: value for name, value in found.items() if isinstance(value, str | int)}


def differences(ours: dict[str, str | int | bool], theirs: dict[str, str | int | bool]) -> list[str]:
    """What both know and disagree on, as text: `hidden_size 64, not 32`."""
    return [
        f"{name} {theirs[name]}, not {ours[name]}"
        for name in _NAMES
        if name in ours and name in theirs and ours[name] != theirs[name]
    ]
