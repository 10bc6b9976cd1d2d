"""Controls: completions made of the data itself, of which it is known beforehand whether a sound reward pays them.

    pays      the reference
    refuses   another row's reference, nothing, the prompt, all answers at once, empty forms, junk
    shown     a form of the reference that is not the best one, a program with one thing changed

A reward that gets no column of the data cannot know the answer (form, length, repetition): what it pays is shown only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Literal

from grpo_core.trial.programs import hides, is_program, near_miss
from grpo_core.trial.reference import EMPTY_THOUGHT, FORMS, Reference
from grpo_core.types import Sample

__all__ = ["REFERENCE", "Control", "Judged", "Rows", "controls"]

Judged = Literal["pays", "refuses", "shown"]
"""What a sound reward does with it."""

REFERENCE = "the reference"

_LISTED = 16
"""Answers in a list of all answers."""
_JUNK_ROWS = 8
"""Rows that get junk: long texts may take a reward its whole budget."""
_JUNK_WORDS = 20_000
_JUNK = (
    "so",
    "the",
    "answer",
    "is",
    "x",
    "=",
    "1",
    "2",
    "17",
    "\\frac",
    "{",
    "}",
    "(",
    ")",
    "$",
    "def",
    "return",
    "\n",
)
_NUMBER = re.compile(r"\d+(\.\d+)?")
_MISSES: Mapping[str, Callable[[str], str]] = {
    "a digit too many in front": lambda answer: f"1{answer}",
    "a digit too many behind": lambda answer: f"{answer}1",
}
"""Of an answer that is a number."""
_TAGS = {
    "empty tags": "<think></think><answer></answer>",
    "an empty box": "\\boxed{}",
    "an empty fence": "```python\n```",
    "a tool call": "<think></think>\nAction: search\nAction Input: {}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One kind of completion, for every row that it can be made for."""

    name: str
    """In the table."""
    judged: Judged
    """What a sound reward does."""
    write: Callable[[int], str | None]
    """The completion for row i; None: there is none."""


@dataclass(frozen=True)
class Rows:
    """The rows of an audit, and their right answers where these are known."""

    samples: Sequence[Sample]
    """The rows."""
    reference: Reference | None = None
    """Where the right answer is; None: the data has none, or the reward cannot know it."""
    knows: bool = True
    """Whether the reward gets anything of a row, and so can be judged by what is no answer to it."""

    @cached_property
    def answers(self) -> Sequence[str | None]:
        """The right answer of each row as bare text."""
        return [self.reference.of(sample) if self.reference else None for sample in self.samples]

    @cached_property
    def distinct(self) -> list[str]:
        """All distinct answers, in order."""
        return list(dict.fromkeys(answer for answer in self.answers if answer is not None))

    def wrong(self, index: int, count: int) -> list[str]:
        """Up to so many answers of other rows, none of which is this row's."""
        own, every = self.answers[index], self.distinct
        start = every.index(own) + 1 if own is not None else 0
        return [answer for answer in every[start:] + every[:start] if answer != own][:count]


def controls(rows: Rows) -> Iterator[Control]:
    """Every control that can be made for these rows."""
    refuses: Judged = "refuses" if rows.knows else "shown"
    if rows.reference is not None:
        yield from _of_reference(rows, rows.reference)
    yield Control(name="nothing", judged=refuses, write=lambda _: "")
    yield Control(name="the prompt", judged=refuses, write=lambda index: _prompt(rows.samples[index]))
    for name, text in _TAGS.items():
        yield Control(name=name, judged=refuses, write=_constant(text))
    junk = _junk()
    dressed = rows.reference.write(junk) if rows.reference else junk
    yield Control(name="long junk", judged=refuses, write=lambda index: dressed if index < _JUNK_ROWS else None)


def _of_reference(rows: Rows, reference: Reference) -> Iterator[Control]:
    yield Control(name=f"{REFERENCE}, {reference.form}", judged="pays", write=_written(rows, reference))
    for form in FORMS:
        if form != reference.form:
            other = replace(reference, form=form)
            yield Control(name=f"{REFERENCE}, {form}", judged="shown", write=_written(rows, other))
    yield Control(name="another row's reference", judged="refuses", write=lambda index: _anothers(rows, index))
    yield Control(name="the reference in the thinking only", judged="refuses", write=lambda i: _in_thought(rows, i))
    for name, miss in _MISSES.items():
        yield Control(name=name, judged="refuses", write=_missed(rows, reference, miss))
    if any(answer is not None and is_program(answer) for answer in rows.distinct):
        yield Control(name="one thing changed in the program", judged="shown", write=lambda i: _near_miss(rows, i))
    yield Control(name="all answers in one", judged="refuses", write=lambda index: _in_one(rows, index))
    yield Control(name="all answers, one by one", judged="refuses", write=lambda index: _one_by_one(rows, index))


def _written(rows: Rows, reference: Reference) -> Callable[[int], str | None]:
    def write(index: int) -> str | None:
        answer = reference.of(rows.samples[index])
        return None if answer is None else reference.write(answer)

    return write


def _missed(rows: Rows, reference: Reference, miss: Callable[[str], str]) -> Callable[[int], str | None]:
    def write(index: int) -> str | None:
        answer = rows.answers[index]
        return reference.write(miss(answer)) if answer is not None and _NUMBER.fullmatch(answer) else None

    return write


def _constant(text: str) -> Callable[[int], str]:
    return lambda _index: text


def _near_miss(rows: Rows, index: int) -> str | None:
    """A share of these computes the same or is not met by any input, so that they are no proof, but a measure."""
    answer = rows.answers[index]
    changed = near_miss(answer) if answer is not None and is_program(answer) else None
    return rows.reference.write(changed) if rows.reference and changed is not None else None


def _anothers(rows: Rows, index: int) -> str | None:
    wrong = rows.wrong(index, 1)
    return rows.reference.write(wrong[0]) if rows.reference and wrong else None


def _in_thought(rows: Rows, index: int) -> str | None:
    """The right answer in the thinking, and another row's as the answer."""
    own, other = rows.answers[index], _anothers(rows, index)
    if rows.reference is None or own is None or other is None:
        return None
    thought = rows.reference.write(own).removeprefix(EMPTY_THOUGHT)
    return f"<think>{thought}</think>\n{other.removeprefix(EMPTY_THOUGHT)}"


def _in_one(rows: Rows, index: int) -> str | None:
    listed = _listed(rows, index)
    if rows.reference is None or listed is None:
        return None
    separator = "\n" if any("\n" in answer for answer in listed) else ", "
    return rows.reference.write(separator.join(listed))


def _one_by_one(rows: Rows, index: int) -> str | None:
    listed = _listed(rows, index)
    return None if rows.reference is None or listed is None else "\n".join(map(rows.reference.write, listed))


def _listed(rows: Rows, index: int) -> list[str] | None:
    """Several answers with the right one in the middle: whoever takes the first or the last does not find it."""
    own = rows.answers[index]
    if own is None:
        return None
    wrong = rows.wrong(index, len(rows.distinct))
    if is_program(own):
        wrong = [program for program in wrong if hides(program, own)]
    if not wrong:
        return None
    wrong = wrong[:_LISTED]
    half = (len(wrong) + 1) // 2
    return [*wrong[:half], own, *(wrong[half:] or wrong[:1])]


def _prompt(sample: Sample) -> str:
    return "\n\n".join(message.content for message in sample.messages)


def _junk() -> str:
    random = Random("junk")
    return " ".join(random.choice(_JUNK) for _ in range(_JUNK_WORDS))
