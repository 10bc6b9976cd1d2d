"""A sample through the chat template: its messages, its tools and its options; and what of these the template left out.

messages                        of the sample
column `tools`                  function schemas, a list or its JSON text
column `chat_template_kwargs`   variables of the template, an object or its JSON text; they win over
                                `model.chat_template_options`
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transformers import PreTrainedTokenizerBase

from grpo_core.data.images import PLACEHOLDER
from grpo_core.data.samples import OPTIONS_COLUMN, TOOLS_COLUMN
from grpo_core.errors import DataError
from grpo_core.model.tokenizer import check_template_options, render_text, uses_variable
from grpo_core.model.vision import Vision
from grpo_core.types import Sample
from grpo_core.types.sample import image_count

__all__ = ["LeftOut", "render_sample", "template_inputs"]


@dataclass(slots=True)
class LeftOut:
    """What the template did not write, counted over the samples of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    """What -> in how many samples."""
    first: dict[str, str] = field(default_factory=dict)
    """What -> the first of these samples."""

    def add(self, sample: Sample, found: Iterable[str]) -> None:
        """Count what was left out of one sample."""
        for what in found:
            self.counts[what] += 1
            self.first.setdefault(what, sample.id)

    def warnings(self, samples: int) -> tuple[str, ...]:
        """A line for each kind."""
        return tuple(
            f"the chat template leaves out {what} ({count} of {samples} prompts, first {self.first[what]}): the model "
            "does not see it; see model.chat_template and model.chat_template_options"
            for what, count in self.counts.items()
        )


def render_sample(
    sample: Sample,
    tokenizer: PreTrainedTokenizerBase,
    options: Mapping[str, object],
    left_out: LeftOut,
    vision: Vision | None = None,
) -> str:
    """The prompt as the model reads it, with one placeholder an image; `options` are the template's variables for all
    samples, `vision` how the model reads images, None where it does not. Raises `DataError` that names the sample."""
    try:
        tools, own = template_inputs(sample)
        check_template_options(own)
        placeholder = _placeholder(sample, vision)
        text = render_text(sample.messages, tokenizer, tools=tools, options={**options, **own}, placeholder=placeholder)
    except DataError as error:
        raise DataError(f"sample {sample.id}: {error.message}", hint=error.hint) from error
    left_out.add(sample, _left_out(sample, tools, own, text, tokenizer))
    return text


def _placeholder(sample: Sample, vision: Vision | None) -> str | None:
    """The model's own text for an image; None: the sample has none."""
    if not sample.images:
        return None
    if vision is None:
        raise DataError(
            f"it has {image_count(len(sample.images))}, and the model reads text only",
            hint="Choose a vision-language model (model.path), or leave the images out: rename their column.",
        )
    return vision.placeholder


def template_inputs(sample: Sample) -> tuple[list[Mapping[str, object]] | None, Mapping[str, object]]:
    """The tools and the options that the row itself gives the template; raises `DataError` that names the column."""
    tools = _from_json(sample, TOOLS_COLUMN)
    if tools is not None and not (isinstance(tools, Sequence) and all(isinstance(tool, Mapping) for tool in tools)):
        raise _wrong(TOOLS_COLUMN, "a list of function schemas, which the chat template writes", tools)
    options = _from_json(sample, OPTIONS_COLUMN)
    if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        raise _wrong(OPTIONS_COLUMN, "an object of the chat template's variables", options)
    # Table files fill in what only other rows have with None.
    return list(tools) if tools else None, {key: value for key, value in (options or {}).items() if value is not None}


def _from_json(sample: Sample, column: str) -> object:
    value = sample.columns.get(column)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except (ValueError, RecursionError):
        return value


def _wrong(column: str, wanted: str, value: object) -> DataError:
    shown = repr(value)
    return DataError(
        f"column {column}: is {wanted}, or its JSON text; this is {shown if len(shown) <= 60 else shown[:57] + '...'}",
        hint=f"Where it means something else, rename it: --columns {column}=row_{column}.",
    )


def _left_out(
    sample: Sample,
    tools: Sequence[Mapping[str, object]] | None,
    options: Mapping[str, object],
    text: str,
    tokenizer: PreTrainedTokenizerBase,
) -> Iterator[str]:
    for message in sample.messages:
        if not _stands_in(message.content, text):
            yield f"text of {'an' if message.role == 'assistant' else 'a'} {message.role} message"
    if any(name not in text for name in map(_name_of, tools or ()) if name):
        yield f"tools of the column {TOOLS_COLUMN}"
    for name in options:
        if not uses_variable(tokenizer, name):
            yield f"'{name}' of the column {OPTIONS_COLUMN}"


def _stands_in(content: str, text: str) -> bool:
    """Whether a text was written, white space and the places of images aside."""
    pieces = [piece.strip() for piece in content.split(PLACEHOLDER)]
    return all(piece in text or _folded(piece) in _folded(text) for piece in pieces)


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _name_of(tool: Mapping[str, object]) -> str | None:
    function = tool.get("function", tool)
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else None
