"""Where completions end, said by the model that a run exports as its training knew it, and to people at launch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from grpo_core.model.load import model_config
from grpo_core.model.tokenizer import end_token_ids, named_end_ids
from grpo_core.recipe.schema import ModelSettings

__all__ = ["end_note", "name_ends", "never_ends_warning"]


def name_ends(model: Any, tokenizer: PreTrainedTokenizerBase, settings: ModelSettings) -> None:
    """Let the config and generation config of a loaded model name the end tokens that completions end at, and the
    tokenizer's padding token: what is exported then ends where it was trained to."""
    ends = end_token_ids(tokenizer, settings)
    generation, configs = model.generation_config, [model.config, model.config.get_text_config()]
    for config in filter(None, (generation, *configs)):
        if _listed(getattr(config, "eos_token_id", None)) != ends:
            config.eos_token_id = _ordered(ends, tokenizer)
    pad = tokenizer.pad_token_id
    if pad is None or pad >= len(model.get_input_embeddings().weight):
        return
    if generation is not None:
        generation.pad_token_id = pad
    if pad not in ends:  # an embedding has no gradient for what the config calls padding
        for config in configs:
            config.pad_token_id = pad


def end_note(tokenizer: PreTrainedTokenizerBase, settings: ModelSettings) -> str | None:
    """What to tell a person where `generate` on the model as it is ends at fewer tokens than completions do; None where
    its files agree."""
    named = named_end_ids(tokenizer, settings)
    ends = end_token_ids(tokenizer, settings)
    known = named.get("generation_config.json") or named.get("config.json") or ends
    if known == ends:
        return None
    words = "; ".join(f"{place} {_shown(ids, tokenizer)}" for place, ids in named.items())
    return (
        f"the model's files name different end tokens ({words}): a completion ends at any of them, and the exported "
        "model names all of them"
    )


def never_ends_warning(
    tokenizer: PreTrainedTokenizerBase, settings: ModelSettings, stop: Sequence[str], max_tokens: int
) -> str | None:
    """What to tell a person whose model has nothing to end a completion with; None where it has."""
    vocab_size = getattr(model_config(settings).get_text_config(), "vocab_size", None)
    ends = end_token_ids(tokenizer, settings)
    if stop or any(vocab_size is None or end < vocab_size for end in ends):
        return None
    none = f"the end tokens {sorted(ends)} are beyond its vocabulary of {vocab_size}" if ends else "it has no end token"
    return (
        f"no completion can end: {none}, in tokenizer, config.json and generation_config.json, and rollout.stop is "
        f"empty. Each is cut at {max_tokens} tokens (rollout.max_completion_tokens) and counts as truncated; name an "
        "eos_token in the tokenizer, or texts to stop at"
    )


def _listed(value: int | Sequence[int] | None) -> frozenset[int]:
    return frozenset() if value is None else frozenset([value] if isinstance(value, int) else value)


def _ordered(ends: Collection[int], tokenizer: PreTrainedTokenizerBase) -> int | list[int] | None:
    """The tokenizer's first."""
    ordered = sorted(ends, key=lambda end: (end != tokenizer.eos_token_id, end))
    return ordered if len(ordered) > 1 else next(iter(ordered), None)


def _shown(ids: Collection[int], tokenizer: PreTrainedTokenizerBase) -> str:
    words = [f"{tokenizer.convert_ids_to_tokens(end)!r} ({end})" for end in sorted(ids)]
    return ", ".join(words) if words else "none"
