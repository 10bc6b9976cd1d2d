"""How `grpoctl datasets` looks, and the plain values of its `--json`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rich.text import Text

from grpo_core.cli.console import stdout
from grpo_core.cli.tables import print_table
from grpo_core.plugins.catalog import Entry
from grpo_core.plugins.specs import DatasetSpec

if TYPE_CHECKING:
    from grpo_core.data.samples import LoadedSamples
    from grpo_core.model.vision import Vision
    from grpo_core.types import ImageRef, Sample

__all__ = ["facts_of", "preview_of", "show_list", "show_preview", "size_text"]

_SHOWN_CHARACTERS = 200
"""Of a column's value, on the console."""


def facts_of(entry: Entry) -> dict[str, object]:
    """A registered dataset in `datasets list --json`."""
    spec = cast(DatasetSpec, entry.spec)
    return {
        "name": spec.name,
        "qualified_name": entry.qualified_name,
        "summary": spec.summary,
        "aliases": list(spec.aliases),
        "makes_rows": spec.source is not None,
        "hub_ids": list(spec.hub_ids),
    }


def show_list(entries: Sequence[Entry]) -> None:
    """`datasets list`."""
    if not entries:
        stdout.print("No dataset is registered. Files and hf:owner/name can be used all the same.")
        return
    rows = []
    for facts in map(facts_of, entries):
        ids = "\n".join(cast(list[str], facts["hub_ids"]))
        origin = "makes them itself" if facts["makes_rows"] else "from a hub or file"
        rows.append((str(facts["name"]), origin, ids, str(facts["summary"])))
    print_table(("name", "rows", "knows the rows of", "summary"), rows)


def preview_of(
    loaded: LoadedSamples, prompts: Sequence[tuple[str, int]] | None, rows: int, vision: Vision | None = None
) -> dict[str, Any]:
    """Everything a preview shows; `prompts` are (text, tokens) of the first rows, None without a model; `vision` is how
    that reads images."""
    shown = loaded.samples[:rows]
    rendered = prompts if prompts is not None else [None] * len(shown)
    return {
        "rows": len(loaded.samples),
        "columns": sorted(loaded.columns),
        "dropped": dict(loaded.dropped),
        "samples": [_of_sample(sample, prompt, vision) for sample, prompt in zip(shown, rendered, strict=True)],
    }


def show_preview(facts: Mapping[str, Any]) -> None:
    """`datasets preview`."""
    for sample in facts["samples"]:
        stdout.print(Text(sample["id"], style="bold"))
        if "prompt" in sample:
            _show_block(f"prompt, {sample['prompt_tokens']} tokens", sample["prompt"])
        else:
            for message in sample["messages"]:
                _show_block(message["role"], message["content"])
        for image in sample["images"]:
            _show_line("image", f"{image['source']}, {size_text(image)}")
        for name, value in sample["columns"].items():
            _show_line(name, json.dumps(value, ensure_ascii=False))
        stdout.print()
    count = f"{facts['rows']} {'row' if facts['rows'] == 1 else 'rows'}"
    stdout.print(Text(f"{count}; rewards can read: {', '.join(facts['columns']) or 'no column'}"))
    for reason, count in facts["dropped"].items():
        stdout.print(Text(f"{count} rows left out: {reason}"))


def size_text(image: Mapping[str, Any]) -> str:
    """`480 × 320 pixels, 187 visual tokens`."""
    tokens = f", {image['visual_tokens']} visual tokens" if "visual_tokens" in image else ""
    return f"{image['width']} × {image['height']} pixels{tokens}"


def _of_image(image: ImageRef, vision: Vision | None) -> dict[str, object]:
    from grpo_core.model.pixels import image_size

    width, height = image_size(image)
    facts: dict[str, object] = {"source": _plain(image.source), "width": width, "height": height}
    return facts if vision is None else {**facts, "visual_tokens": vision.tokens_of(image)}


def _of_sample(sample: Sample, prompt: tuple[str, int] | None, vision: Vision | None) -> dict[str, object]:
    facts: dict[str, object] = {
        "id": sample.id,
        "messages": [{"role": message.role, "content": message.content} for message in sample.messages],
        "images": [_of_image(image, vision) for image in sample.images],
        "columns": {name: _plain(value) for name, value in sample.columns.items()},
    }
    if prompt is not None:
        facts |= {"prompt": prompt[0], "prompt_tokens": prompt[1]}
    return facts


def _plain(value: object) -> object:
    """The value in what JSON knows."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value).encode("utf-8", "replace").decode()  # a lone surrogate cannot be printed


def _show_block(label: str, text: str) -> None:
    stdout.print(Text(f"  {label}", style="cyan"))
    for line in text.splitlines():
        stdout.print(Text(f"    {line}".rstrip()))


def _show_line(label: str, value: str) -> None:
    shown = value if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]}… ({len(value)} characters)"
    stdout.print(Text.assemble("  ", (label, "cyan"), f" = {shown}"))
