"""Code fences of a text: ``` or ~~~ of any length, any info string, indented or not, also without an end.

A fence ends at a line of its own with the same sign, at least as often, and not much deeper in, a tag of
the answer may be glued to it; so a program may print
backticks and hold fences in its texts. One pass over the lines, no backtracking.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Fence", "fences", "unquoted"]

_PYTHON = re.compile(r"i?python[\d.]*|py[\d.]*|cpython|pypy[\d.]*")
_LEADING_TAGS = re.compile(r"(</?\w+>\s*)*")
_ANSWER_TAG = re.compile(r"\s*(</?(think|answer)>|<[|｜][^|｜<>\n]{1,40}[|｜]>|</s>)")
"""Also a token that ends a turn, which some engines leave in the text."""
_QUOTE = re.compile(r"^ {0,3}> ?")


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced block."""

    language: str
    """The first word of the info string, lower case; empty: none."""
    start: int
    """Where its content begins in the text."""
    end: int
    """Where its content ends."""
    closed: bool
    """Whether it has an end of its own; else it goes on to the next one, or to the end of the text."""
    content: str
    """Its lines, without the indentation of the fence."""

    @property
    def is_python(self) -> bool:
        """Whether it says that it is Python."""
        return _PYTHON.fullmatch(self.language) is not None


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with a run of at least three backticks or tildes."""

    before: str
    run: str
    info: str

    @property
    def column(self) -> int:
        blank = self.before[: len(self.before) - len(self.before.lstrip(" \t"))]
        return len(blank.expandtabs())

    @property
    def is_bare(self) -> bool:
        """Whether nothing else is in the line, a tag of the answer and what follows it aside."""
        return not self.before.strip() and (not self.info.strip() or _ANSWER_TAG.match(self.info) is not None)

    @property
    def opens(self) -> bool:
        """A sentence may lead up to a fence, if nothing but the name of a language follows it."""
        lead = self.before.strip()
        if "`" in self.before or (self.run[0] == "`" and "`" in self.info):
            return False
        return not lead or (self.run[0] == "`" and re.fullmatch(r"[\w+#.-]*", self.info.strip()) is not None)


def unquoted(text: str) -> str:
    """The text without the marks of a quotation, where its first fence stands in one (`> ```python`); else as it is."""
    lines = text.split("\n")
    first = next((line for line in lines if "```" in line or "~~~" in line), "")
    mark = _QUOTE.match(first)
    if mark is None or not first[mark.end() :].startswith(("```", "~~~")):
        return text
    return "\n".join(_QUOTE.sub("", line, count=1) for line in lines)


def fences(text: str) -> list[Fence]:
    """The fenced blocks of a text, in order."""
    found: list[Fence] = []
    opening: _Line | None = None
    start = position = 0
    lines: list[str] = []
    for raw in text.split("\n"):
        after = position + len(raw) + 1
        line = _line(raw)
        if opening is not None and line is not None and _ends(line, opening):
            found.append(_fence(opening, start, position, lines, closed=True))
            opening, start, lines = _opening(line.info), after, []
        elif line is not None and line.opens and (opening is None or _restarts(line, opening)):
            if opening is not None:
                found.append(_fence(opening, start, position, lines, closed=False))
            opening, start, lines = line, after, []
        elif opening is not None:
            lines.append(raw)
        position = after
    if opening is not None:
        found.append(_fence(opening, start, len(text), lines, closed=False))
    return found


def _line(raw: str) -> _Line | None:
    places = [place for place in (raw.find("```"), raw.find("~~~")) if place >= 0]
    if not places:
        return None
    first = min(places)
    rest = raw[first:].lstrip(raw[first])
    end = len(raw) - len(rest)
    return _Line(before=raw[:first], run=raw[first:end], info=rest)


def _opening(rest: str) -> _Line | None:
    """The fence that begins in the rest of the line in which another ended: ```<answer>```python."""
    line = _line(rest)
    return line if line is not None and line.opens else None


def _ends(line: _Line, opening: _Line) -> bool:
    same = line.run[0] == opening.run[0] and len(line.run) >= len(opening.run)
    return line.is_bare and same and line.column <= opening.column + 3


def _restarts(line: _Line, opening: _Line) -> bool:
    """A fence that names Python where another is open, as far in: the one before was left unfinished."""
    lead = _LEADING_TAGS.fullmatch(line.before.strip())
    same = line.run == opening.run and line.column == opening.column
    return lead is not None and same and _PYTHON.fullmatch(_language(line.info)) is not None


def _fence(opening: _Line, start: int, end: int, lines: Sequence[str], *, closed: bool) -> Fence:
    if not closed and lines:
        lines = "\n".join(lines).rstrip().removesuffix(opening.run).split("\n")
    indent = len(opening.before) - len(opening.before.lstrip(" \t"))
    cut = [line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    return Fence(_language(opening.info), min(start, end), end, closed, textwrap.dedent("\n".join(cut)))


def _language(info: str) -> str:
    return re.split(r"[\s,{}=:;]+", info.strip().lstrip("{.= "), maxsplit=1)[0].lower()
