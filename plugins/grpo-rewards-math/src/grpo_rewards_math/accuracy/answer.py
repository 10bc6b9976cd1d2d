"""Where the answer stands: in a completion, and in the reference column of a row.

Nothing here reads mathematics; what comes out is text, or None when no answer was given.

Place in the flow: completion → **answer text** → value → score.
"""

from __future__ import annotations

import re
from numbers import Integral, Rational, Real

__all__ = ["answer_in", "opens_thought", "reference_in", "spoken_in"]

_BOX = re.compile(r"\\f?boxed\s*|\\fbox\s*")
_THOUGHT, _THOUGHT_END = (re.compile(rf"<{slash}think(?:ing)?>", re.IGNORECASE) for slash in ("", "/"))
_BLANK = " \t\n"
"""Other control characters at the edge of a reference are rests of commands."""
_MAX_NESTED_BOXES = 8


def answer_in(completion: str, *, thought_open: bool = False) -> str | None:
    """The content of the last answer block after the thinking, else of the last box there; None without either.

    `thought_open` says that the prompt ended with `<think>`. A thought that never ends holds no answer. Where an
    answer block has a box in it, the box is the answer.
    """
    spoken = spoken_in(completion, thought_open=thought_open)
    if spoken is None:
        return None
    block = _last_block(spoken)
    if block is None:
        return last_box(spoken)
    box = last_box(block)
    return block.strip() if box is None and not _BOX.search(block) else box


def reference_in(column: object) -> str | None:
    """The text of a reference column: a number's digits, else the part of a text that states the answer.

    That part is what follows `####`, the content of an answer block, the last box, or all of it. None for what can
    be no reference: nothing, a truth value, NaN, a structure.
    """
    if isinstance(column, str):
        return _stated(column)
    if isinstance(column, list | tuple) and len(column) == 1:
        return reference_in(column[0])
    item = getattr(column, "item", None)  # numpy and torch scalars
    if callable(item) and getattr(column, "shape", None) == ():
        return reference_in(item())
    if isinstance(column, bool) or not isinstance(column, Real):
        return None
    if isinstance(column, Integral):
        return str(int(column))
    if isinstance(column, Rational):
        return f"{column.numerator}/{column.denominator}"
    number = float(column)
    return _digits(number) if number - number == 0.0 else None


def opens_thought(prompt: str) -> bool:
    """Whether a prompt ends with the tag that begins the thinking."""
    last = prompt.rstrip()[-len("<thinking>") :]
    return any(match.end() == len(last) for match in _THOUGHT.finditer(last))


def last_box(text: str) -> str | None:
    """The content of the last `\\boxed{…}` or `\\fbox{…}`, boxes inside it opened; None when it never ends."""
    starts = [match.end() for match in _BOX.finditer(text)]
    outermost, covered = None, 0
    for start in starts:
        if start < covered:
            continue
        content, covered = _content(text, start)
        outermost = content
    return None if outermost is None else _unboxed(outermost)


def spoken_in(completion: str, *, thought_open: bool = False) -> str | None:
    """What is said after the thinking; None where this never ends."""
    begin = max((match.end() for match in _THOUGHT_END.finditer(completion)), default=0)
    if thought_open and not begin:
        return None
    again = _THOUGHT.search(completion, begin)
    return completion[begin : again.start() if again is not None else len(completion)]


def _last_block(text: str) -> str | None:
    """The last block that is closed; without one, what follows the only tag that opens one."""
    end = text.rfind("</answer>")
    if end < 0 and text.count("<answer>") == 1:
        return text.partition("<answer>")[2]
    start = text.rfind("<answer>", 0, max(end, 0))
    return text[start + len("<answer>") : end] if start >= 0 else None


def _content(text: str, start: int) -> tuple[str | None, int]:
    """What a box that opens at `start` holds, and where it ends; (None, end of text) when its brace never closes."""
    if not text.startswith("{", start):
        word = re.compile(r"[^\s{}\\$.,;]+(?:[.,]\d+)*").match(text, start)  # \boxed 31
        return (word[0], word.end()) if word else (None, start)
    depth, position = 0, start
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 1  # an escaped brace is a sign, not a bracket
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return text[start + 1 : position].strip(), position + 1
        position += 1
    return None, len(text)


def _unboxed(content: str) -> str | None:
    for _ in range(_MAX_NESTED_BOXES):
        match = _BOX.match(content)
        if match is None:
            return content
        inner, end = _content(content, match.end())
        if inner is None or content[end:].strip():
            return None
        content = inner
    return None


def _stated(text: str) -> str | None:
    if "####" in text:
        return text.rpartition("####")[2].strip(_BLANK)
    block = _last_block(text)
    if block is not None:
        text = block
    if _BOX.search(text):
        return last_box(text)
    return text.strip(_BLANK)


def _digits(number: float) -> str:
    """A float's shortest decimal form, without an exponent sign that could be read as a letter."""
    return str(int(number)) if number.is_integer() else repr(number)
