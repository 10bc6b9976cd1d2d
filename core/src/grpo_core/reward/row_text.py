"""A sample as a warning quotes it: what was asked and its columns, on one line, long values cut.

Place in the flow: beside what is said about a sample, at launch and while scoring.
"""

from __future__ import annotations

import json

from grpo_core.types import Sample

__all__ = ["row_text"]

_MOST_CHARACTERS = 80


def row_text(sample: Sample) -> str:
    """The last message and every column that has a value.

    Example: `{"prompt": "6*7?", "solution": "42", "task": "geometry"}`
    """
    values = {"prompt": sample.messages[-1].content, **sample.columns}
    told = [f"{json.dumps(name)}: {_cut(value)}" for name, value in values.items() if value is not None]
    return "{" + ", ".join(told) + "}"


def _cut(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # a column holds whatever a dataset holds
        text = json.dumps(type(value).__name__)
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[: _MOST_CHARACTERS - 1]}…"
