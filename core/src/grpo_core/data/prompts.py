"""Samples -> prompts: the chat template applied and encoded, and what happens to those that are too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from transformers import PreTrainedTokenizerBase

from grpo_core.data.rendering import LeftOut, render_sample
from grpo_core.data.token_cache import encode_cached
from grpo_core.errors import DataError
from grpo_core.model.tokenizer import template_warning
from grpo_core.model.vision import Vision
from grpo_core.types import Sample
from grpo_core.types.sample import image_count

__all__ = ["OverLong", "Prompt", "RenderedPrompts", "render_prompts"]

OverLong = Literal["drop", "error", "truncate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A sample as the model reads it."""

    sample: Sample
    """Where it comes from."""
    text: str
    """The rendered prompt, chat template and generation prompt included."""
    token_ids: tuple[int, ...]
    """[P] What the model sees: the tokens of `text`, each placeholder replaced by all tokens of its image."""
    bare_ids: tuple[int, ...] = ()
    """The tokens of `text` with one placeholder an image; empty: there are no images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompts:
    """All prompts of a set of samples."""

    prompts: tuple[Prompt, ...]
    """In the order of the samples."""
    dropped: int = 0
    """Samples left out because their prompt is too long."""
    truncated: int = 0
    """Prompts that lost their beginning."""
    warnings: tuple[str, ...] = ()
    """What a person should know."""


def render_prompts(
    samples: Sequence[Sample],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_prompt_tokens: int | None,
    over_long: OverLong,
    template_options: Mapping[str, object] = MappingProxyType({}),
    vocabulary: int | None = None,
    may_be_empty: bool = False,
    vision: Vision | None = None,
) -> RenderedPrompts:
    """Render and encode the prompts of all samples; `template_options` are variables of the chat template.

    A prompt of more than `max_prompt_tokens` tokens is dropped, is a `DataError` that names the sample, or loses
    tokens from its beginning, so that the question's end and the start of the assistant's turn stay. Raises
    `DataError` when samples were given and every one is dropped, unless that `may_be`, and for a token that is not
    among the `vocabulary` first, those that the model has embeddings for; None: not known. `vision` is how the model
    reads images, None for one that does not; prompts with images are not truncated, which would cut these off.
    """
    left_out = LeftOut()
    texts = [render_sample(sample, tokenizer, template_options, left_out, vision) for sample in samples]
    encoded = encode_cached(texts, tokenizer)
    expanded = encoded if vision is None else _with_images(samples, texts, encoded, vision)
    prompts: list[Prompt] = []
    long: list[int] = []
    for sample, text, bare_ids, token_ids in zip(samples, texts, encoded, expanded, strict=True):
        if vocabulary is not None and max(token_ids, default=0) >= vocabulary:
            raise _unknown_token(sample, max(token_ids), vocabulary, tokenizer)
        if max_prompt_tokens is None or len(token_ids) <= max_prompt_tokens:
            bare = bare_ids if sample.images else ()
            prompts.append(Prompt(sample=sample, text=text, token_ids=token_ids, bare_ids=bare))
            continue
        long.append(len(token_ids))
        if over_long == "error" or (over_long == "truncate" and sample.images):
            raise _too_long(sample, len(token_ids), max_prompt_tokens)
        if over_long == "truncate":
            kept = token_ids[-max_prompt_tokens:]
            prompts.append(Prompt(sample=sample, text=tokenizer.decode(kept), token_ids=kept))
    if samples and not prompts and not may_be_empty:
        raise _all_too_long(long, max_prompt_tokens, any(sample.images for sample in samples))
    dropped = len(samples) - len(prompts)
    return RenderedPrompts(
        prompts=tuple(prompts),
        dropped=dropped,
        truncated=len(long) - dropped,
        warnings=(
            *_warnings(tokenizer, samples, long, dropped, max_prompt_tokens),
            *left_out.warnings(len(samples)),
        ),
    )


def _with_images(
    samples: Sequence[Sample], texts: Sequence[str], encoded: Sequence[tuple[int, ...]], vision: Vision
) -> list[tuple[int, ...]]:
    """The prompts as the model sees them; the first with images is compared with what the processor makes of it."""
    expanded: list[tuple[int, ...]] = []
    compared = False
    for sample, text, bare_ids in zip(samples, texts, encoded, strict=True):
        try:
            vision.require_places(bare_ids, sample.images)
            expanded.append(vision.expand(bare_ids, sample.images) if sample.images else bare_ids)
            if sample.images and not compared:
                vision.require_same(text, sample.images, expanded[-1])
                compared = True
        except DataError as error:
            raise DataError(f"sample {sample.id}: {error.message}", hint=error.hint) from error
    return expanded


def _too_long(sample: Sample, tokens: int, limit: int) -> DataError:
    if sample.images:
        return DataError(
            f"sample {sample.id}: its prompt has {tokens} tokens, those of {image_count(len(sample.images))} included, "
            f"and at most {limit} are allowed",
            hint="Bound the images with model.max_pixels, raise dataset.max_prompt_tokens, or set dataset.over_long to "
            "drop; prompts with images are not truncated.",
        )
    return DataError(
        f"sample {sample.id}: its prompt has {tokens} tokens, and at most {limit} are allowed",
        hint="Raise dataset.max_prompt_tokens, or set dataset.over_long to drop or truncate.",
    )


def _unknown_token(sample: Sample, token: int, vocabulary: int, tokenizer: PreTrainedTokenizerBase) -> DataError:
    return DataError(
        f"sample {sample.id}: its prompt has the token {token} ({tokenizer.convert_ids_to_tokens(token)!r}), and the "
        f"model has embeddings for {vocabulary} tokens only: vocab_size in its config.json",
        hint="Tokenizer and model do not belong together, or tokens were added and the model was not resized for them.",
    )


def _all_too_long(lengths: Sequence[int], limit: int | None, have_images: bool) -> DataError:
    last = "bound the images with model.max_pixels" if have_images else "set dataset.over_long to truncate"
    return DataError(
        f"no prompt is left: all {len(lengths)} are longer than the {limit} tokens allowed; the shortest has "
        f"{min(lengths)}",
        hint="Raise dataset.max_prompt_tokens, or lower rollout.max_completion_tokens where the model's context is the "
        f"limit, or {last}.",
    )


def _warnings(
    tokenizer: PreTrainedTokenizerBase, samples: Sequence[Sample], long: Sequence[int], dropped: int, limit: int | None
) -> tuple[str, ...]:
    length = None
    if long:
        split = samples[0].id.rpartition("-")[0]
        fate = "are left out" if dropped else "lost their beginning"
        length = f"{len(long)} of {len(samples)} {split} prompts have more than {limit} tokens and {fate}"
    return tuple(warning for warning in (template_warning(tokenizer), length) if warning)
