"""HTML from text that nobody vouches for: whatever is not `Html` already is escaped."""

from __future__ import annotations

import html

__all__ = ["Html", "join", "tag"]


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str | None) -> Html:
    """An element. A trailing `_` of an attribute's name falls away, others become `-`; one that is None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def join(*parts: str) -> Html:
    """Parts in a row."""
    return Html("".join(part if isinstance(part, Html) else html.escape(part) for part in parts))
