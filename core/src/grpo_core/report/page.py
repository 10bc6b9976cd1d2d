"""The page: one HTML file with its style, its script and its data inside, and nothing from anywhere else.

What a model wrote is data and never markup: it stands in a JSON block in which no `<` occurs, and the script shows it
as text only. A content security policy lets the browser run and load nothing but what core put there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from grpo_core import __version__
from grpo_core.report.markup import Html, tag

__all__ = ["fill", "json_block", "render"]

_SCRIPTS = (
    *("dom.js", "scale.js", "series.js", "plot.js", "chart.js", "curves.js"),
    *("images.js", "scores.js", "probes.js", "completions.js", "start.js"),
)
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def render(*, title: str, parts: Mapping[str, Html], data: Mapping[str, Any]) -> str:
    """The whole page; `parts` fill the slots of its body, `data` is what the script draws."""
    style = _resource("page.css")
    script = "\n".join(["'use strict';", "(() => {", *map(_resource, _SCRIPTS), "})();"])
    slots = {
        **parts,
        "title": tag("title", title),
        "heading": tag("h1", title),
        "policy": tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        "style": Html(f"<style>{style}</style>"),
        "data": json_block(data),
        "script": Html(f"<script>{script}</script>"),
        "version": tag("span", f"grpo-core {__version__}"),
    }
    return fill(_resource("page.html"), slots)


def fill(template: str, slots: Mapping[str, Html]) -> str:
    """Put each slot's HTML in its place, in one pass: nothing inside a slot is taken for another."""
    return _SLOT.sub(lambda found: slots[found[1]], template)


def json_block(data: Mapping[str, Any]) -> Html:
    """Data as a script element of JSON, in which no text can end the element or begin a comment."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair
    return Html(f'<script type="application/json" id="data">{safe}</script>')


def _policy(style: str, script: str) -> str:
    allowed = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    return f"default-src 'none'; img-src data:; {allowed}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}"


def _resource(name: str) -> str:
    return (resources.files("grpo_core.report") / "page" / name).read_text(encoding="utf-8")
