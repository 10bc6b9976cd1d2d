"""`grpoctl datasets preview --html`: the shown rows with their pictures, as one page that opens offline.

What stands in the rows is data and never markup. The page has no script; its policy lets the browser load nothing but
the pictures inside it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from grpo_core.cli.dataset_views import size_text
from grpo_core.model.pixels import thumbnail
from grpo_core.report.markup import Html, join, tag
from grpo_core.types import ImageRef, Sample

__all__ = ["preview_page"]

MOST_BYTES = 8_000_000
"""Of pictures in the page."""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
       color: #1c2030; background: #f5f4f0; }
article { background: #fff; border: 1px solid #ddd; border-radius: 10px; padding: 1rem 1.25rem; margin: 1rem 0; }
h2 { font-size: 1rem; margin: 0 0 .75rem; }
figure { display: inline-block; margin: 0 1rem .75rem 0; vertical-align: top; }
figure img { max-width: 320px; max-height: 320px; border-radius: 6px; display: block; }
figcaption, .label { color: #667; font-size: .85rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .15rem 0 .75rem;
      font: 13px/1.45 ui-monospace, monospace; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6ea; background: #16181f; } article { background: #1f222b; border-color: #333845; }
  figcaption, .label { color: #9aa0b4; }
}
"""


def preview_page(previews: Sequence[tuple[Mapping[str, Any], Sequence[Sample]]]) -> str:
    """The page; each preview with the samples that it shows. Raises `DataError` for an image that cannot be read."""
    left = [MOST_BYTES]
    body = join(*(each for facts, samples in previews for each in _rows(facts, samples, left)))
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = join(
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("title", "Rows of a dataset"),
        Html(f"<style>{_STYLE}</style>"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _rows(facts: Mapping[str, Any], samples: Sequence[Sample], left: list[int]) -> list[Html]:
    shown = [_row(one, sample, left) for one, sample in zip(facts["samples"], samples, strict=True)]
    return [tag("h1", f"{facts['rows']} rows, {len(shown)} of them here"), *shown]


def _row(facts: Mapping[str, Any], sample: Sample, left: list[int]) -> Html:
    pictures = [_picture(image, about, left) for image, about in zip(sample.images, facts["images"], strict=True)]
    if "prompt" in facts:
        texts = [(f"prompt, {facts['prompt_tokens']} tokens", facts["prompt"])]
    else:
        texts = [(message["role"], message["content"]) for message in facts["messages"]]
    texts += [(name, json.dumps(value, ensure_ascii=False)) for name, value in facts["columns"].items()]
    blocks = [join(tag("div", label, class_="label"), tag("pre", _printable(text))) for label, text in texts]
    return tag("article", tag("h2", facts["id"]), *pictures, *blocks)


def _picture(image: ImageRef, about: Mapping[str, Any], left: list[int]) -> Html:
    caption = tag("figcaption", size_text(about))
    small = thumbnail(image)
    if len(small) > left[0]:
        return tag("figure", join("not shown: the page has enough pictures"), caption)
    left[0] -= len(small)
    source = f"data:image/jpeg;base64,{base64.b64encode(small).decode()}"
    return tag("figure", Html(f'<img alt="" src="{source}">'), caption)


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no UTF-8
