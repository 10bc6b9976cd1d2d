"""Lists on the command line: references between commas, one of which may stand in a path that there is."""

from __future__ import annotations

import os
import re

__all__ = ["split_references"]

_PATH = re.compile(r"([^?#]*?\.py(?=:)|[^?#]*)(.*)", re.DOTALL)
"""A path, and what may follow: details, a number of rows, the function of a file."""


def split_references(text: str) -> list[str]:
    """The references of `a,b.jsonl,countdown`, without the blanks around them: parts whose joined text names a file or
    folder that exists are one. An empty part stays, for the caller to refuse.

    Example: with a file `a,b.jsonl` there, `split_references("a,b.jsonl#20,c") == ["a,b.jsonl#20", "c"]`
    """
    parts = text.split(",") if text.strip() else []
    found = []
    while parts:
        taken = next((end for end in range(len(parts), 1, -1) if _exists(",".join(parts[:end]).strip())), 1)
        found.append(",".join(parts[:taken]).strip())
        del parts[:taken]
    return found


def _exists(reference: str) -> bool:
    """Whether this is one reference, whose path is there: what comes after the path has no comma."""
    found = _PATH.fullmatch(reference)
    assert found is not None, "it matches any text"
    path, rest = found.groups()
    try:
        return "," not in rest and os.path.exists(os.path.expanduser(path))
    except ValueError:  # a null character
        return False
