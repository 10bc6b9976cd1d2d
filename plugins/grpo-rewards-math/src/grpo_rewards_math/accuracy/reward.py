"""`math_reward`: does the answer state what the reference states?"""

from __future__ import annotations

import logging
import mmap
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

from grpo_rewards_math.accuracy.answer import answer_in, opens_thought, reference_in
from grpo_rewards_math.accuracy.equal import equal
from grpo_rewards_math.accuracy.exact import tree
from grpo_rewards_math.accuracy.problems import UnreadableError
from grpo_rewards_math.accuracy.read import read, read_sentence
from grpo_rewards_math.accuracy.spelling import canonical
from grpo_rewards_math.accuracy.values import Relation, Value, Words, expressions

__all__ = ["agrees", "is_mathematics", "judge", "math_reward"]

_LOG = logging.getLogger("grpo_rewards_math")
_MAX_ANSWER_CHARACTERS = 2_000
_MAX_REFERENCE_CHARACTERS = 20_000
_CACHED_REFERENCES, _CACHED_ANSWERS = 4_096, 16_384
_UNREADABLE = (UnreadableError, RecursionError, ValueError)
"""`ValueError`: a number of more digits than Python reads, wherever in the text it stands."""
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\t(?=imes|ext|heta|frac|binom|riangle|au\b)|\r(?=ight|angle|floor|ceil|ho\b)|\n(?=eq?\b)"
)
"""What is left of a command whose backslash was read as an escape: a form feed of \\frac, a tab of \\times."""
_MARKS = 1 << 19
_REPORTED = mmap.mmap(-1, _MARKS // 8)
"""A mark for each reference that was reported, in memory that forked workers share: told once, whoever met it."""


def math_reward(
    completions: Sequence[str], solution: Sequence[object], prompts: Sequence[str] | None = None
) -> list[float | None]:
    """1.0 when the answer equals the reference in `solution`, else 0.0; None where there is no readable reference.

    The answer is the content of the last answer block after the thinking, else of the last box. Equality is
    mathematical: nothing is rounded.
    """
    opened = [opens_thought(prompt) for prompt in prompts or [""] * len(completions)]
    rows = zip(completions, solution, opened, strict=True)
    return [judge(text, reference, thought_open=in_thought) for text, reference, in_thought in rows]


def judge(completion: str, solution: object, *, thought_open: bool = False) -> float | None:
    """The score of one completion."""
    stated = reference_in(solution)
    if stated is None:
        return None
    if _reference(stated) is None:
        _report(stated)
        return None
    answer = answer_in(completion, thought_open=thought_open)
    return float(answer is not None and _is_right(answer, stated))


def agrees(answer: str, stated: str) -> bool:
    """Whether an answer states what a reference states, by mathematics; False where either cannot be read so."""
    return _reference(stated) is not None and _is_right(answer, stated)


def is_mathematics(text: str) -> bool:
    """Whether a text has a mathematical value: it is no word, no sentence and nothing unreadable."""
    value = _reference(text)
    return value is not None and not isinstance(value, Words) and not _is_worded(value)


@lru_cache(maxsize=_CACHED_ANSWERS)
def _is_right(answer: str, stated: str) -> bool:
    reference, value = _reference(stated), _answer(answer)
    if reference is None or value is None:
        return reference is not None and answer.split() == stated.split()
    if answer.split() == stated.split() or equal(reference, value):
        return True
    said = _said(answer) if isinstance(value, Words) and " " in value.text else None
    return said is not None and equal(reference, said)


@lru_cache(maxsize=_CACHED_REFERENCES)
def _reference(stated: str) -> Value | None:
    """The reference's value; None when it cannot be read."""
    if len(stated) > _MAX_REFERENCE_CHARACTERS:
        return None
    if _CONTROL.search(stated):
        return None
    try:
        value = read(canonical(stated))
        for expression in expressions(value):
            tree(expression)
    except _UNREADABLE:
        return None
    return value


@lru_cache(maxsize=_CACHED_ANSWERS)
def _answer(text: str) -> Value | None:
    """What an answer states, as a whole or in a sentence; None when that is nothing or cannot be read."""
    if len(text) > _MAX_ANSWER_CHARACTERS:
        return None
    try:
        value = read(canonical(text))
    except _UNREADABLE:
        return _said(text)
    return _said(text) if _is_worded(value) else value


def _is_worded(value: Value) -> bool:
    """Whether it is a relation of several words, which may say anything of their value: `unless x = 4`."""
    return isinstance(value, Relation) and any(isinstance(side, Words) and " " in side.text for side in value.sides)


def _said(text: str) -> Value | None:
    """What a sentence states."""
    try:
        return read_sentence(text)
    except _UNREADABLE:
        return None


def _report(stated: str) -> None:
    if not stated.strip():
        return
    mark = zlib.crc32(stated.encode("utf-8", "surrogatepass")) % _MARKS
    place, bit = divmod(mark, 8)
    if not _REPORTED[place] & (1 << bit):
        _REPORTED[place] |= 1 << bit
        control = _CONTROL.search(stated)
        why = "" if control is None else f" It has the control character {control[0]!r}: double the backslash in JSON."
        _LOG.warning("math_reward cannot read the reference %.200r: its rows are not judged (None).%s", stated, why)
