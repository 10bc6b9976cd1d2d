"""Parts of a canonical text between separators, and where its brackets close."""

from __future__ import annotations

import re

__all__ = ["closing_end", "split", "with_round_ends"]

_TURNED = re.compile(r"([\[\]])([^\[\]()]*[,;][^\[\]()]*)([\[\]])")


def split(text: str, separator: re.Pattern[str], found: list[str] | None = None) -> list[str]:
    """The parts between separators outside all brackets; what separated them is added to `found`."""
    parts, begin, position, depth = [], 0, 0, 0
    while position < len(text):
        match = separator.match(text, position) if depth == 0 else None
        if (
            match is not None
            and match.end() > position
            and not (match[0][0].isalpha() and _inside_word(text, position))
        ):
            parts.append(text[begin:position].strip())
            if found is not None:
                found.append(match[0].strip())
            begin = position = match.end()
            continue
        character = text[position]
        if text.startswith("\\begin", position):
            depth += 1
        elif text.startswith("\\end", position):
            depth -= 1
        if character == "\\" and text[position + 1 : position + 2] in ("{", "}", "\\"):
            depth += {"{": 1, "}": -1, "\\": 0}[text[position + 1]]
            position += 2
            continue
        depth += (character in "([{") - (character in ")]}")
        position += 1
    parts.append(text[begin:].strip())
    return parts


def _inside_word(text: str, position: int) -> bool:
    return position > 0 and (text[position - 1].isalpha() or text[position - 1] == "\\")


def closing_end(text: str) -> int:
    """Where the bracket that opens the text is closed, by whichever kind: half-open intervals mix them."""
    depth, position = 0, 0
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        depth += (text[position] in "([") - (text[position] in ")]")
        position += 1
        if depth == 0:
            return position
    return -1


def with_round_ends(text: str) -> str:
    """Intervals with brackets that turn away from an open end, ]1, 6[, with round ones."""
    if not re.search(r"[\[\]]", text) or _closes_in_pairs(text):
        return text
    return _TURNED.sub(
        lambda match: f"{'(' if match[1] == ']' else '['}{match[2]}{')' if match[3] == '[' else ']'}", text
    )


def _closes_in_pairs(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if depth < 0:
            return False
    return depth == 0
