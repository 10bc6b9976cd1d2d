"""What in a chat template no time limit stops: one operation that fills the memory, or computes for hours in C.

A power, or a product with a huge number: no template for a conversation needs one. Loops are another matter
(`time_limit`).
"""

from __future__ import annotations

import re

from jinja2 import Environment, TemplateError, nodes

__all__ = ["template_cost"]

_MOST = 10**6
"""More than any template counts, indents or repeats."""
_OF_TRANSFORMERS = re.compile(r"\{%[-+]?\s*(?:end)?generation\s*[-+]?%\}")
"""A tag that transformers adds to the language; it marks what the assistant says."""


def template_cost(template: str) -> str | None:
    """Why writing with a template may never come back; None where nothing tells so, and for what is no template."""
    try:
        tree = Environment(extensions=["jinja2.ext.loopcontrols"]).parse(_OF_TRANSFORMERS.sub("", template))
    except (TemplateError, RecursionError):
        return None  # said when it is compiled
    for power in tree.find_all(nodes.Pow):
        return f"it takes a power in line {power.lineno}, which may fill the memory"
    for number in tree.find_all(nodes.Const):
        if isinstance(number.value, int) and abs(number.value) > _MOST:
            return f"it has a number above {_MOST:,} in line {number.lineno}: what it repeats may fill the memory"
    return None
