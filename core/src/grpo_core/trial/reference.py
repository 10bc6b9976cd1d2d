"""Which column of a dataset holds the right answer, and in which form the reward reads it: found by what it pays.

Rewards want an answer bare, in a box, in tags or in a fence, and datasets call it `solution`, `answer` or `target`.
Every likely column is written in every form on a few rows; the pair that pays most is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grpo_core.trial.programs import is_program
from grpo_core.types import Sample

__all__ = ["EMPTY_THOUGHT", "FORMS", "Reference", "answer_block", "candidates", "is_well_known", "reference_text"]

EMPTY_THOUGHT = "<think></think>\n"
"""What some forms begin with."""
FORMS: Mapping[str, Callable[[str], str]] = {
    "bare": lambda text: text,
    "in \\boxed{}": lambda text: f"\\boxed{{{text}}}",
    "in <answer>": lambda text: answer_block(text),
    "in <answer>, after <think>": lambda text: f"{EMPTY_THOUGHT}{answer_block(text)}",
    "in a python fence": lambda text: f"```python\n{text}\n```",
}
"""Name -> how an answer is written."""

_NAMES = (
    *("solution", "answer", "final_answer", "ground_truth", "gold", "reference", "answer_key", "expected_answer"),
    *("canonical_solution", "gold_standard_solution", "reference_solution", "solutions", "answers"),
    *("target", "label", "response", "output", "expected", "code"),
)
"""What datasets call the right answer, the likeliest first."""
_ROUTING = ("task", "dataset")
"""Columns that say which rewards a row is for."""
_FENCED = re.compile(r"```python[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_ANSWER = re.compile(r"<answer>.*?</answer>", re.DOTALL)
_LONGEST = 200
"""Characters of a value that may be an answer although its column has no well-known name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Where the right answer is, and how to write it."""

    column: str
    """Of the dataset."""
    form: str
    """A key of `FORMS`."""
    continues: bool = False
    """Whether the column has only what follows the program in the prompt, the body of a function that begins there."""

    def write(self, text: str) -> str:
        """An answer in this form."""
        return FORMS[self.form](text)

    def of(self, sample: Sample) -> str | None:
        """The right answer of a row, as bare text; None: the row has none."""
        text = reference_text(sample.columns.get(self.column))
        return _continued(sample, text) if self.continues and text is not None else text

    def __str__(self) -> str:
        return f"column {self.column}{' after the prompt' if self.continues else ''}, {self.form}"


def candidates(bound: Iterable[str], columns: Iterable[str], samples: Sequence[Sample]) -> tuple[str, ...]:
    """The columns that may hold the right answer, the likeliest first; `bound` are those that the reward gets.

    A well-known name is enough, whether the reward gets the column or not: a checker of equations gets the numbers, and
    the equation is beside them. Where there is none, the short texts and numbers that the reward gets are meant. None
    for a reward that gets no column: it cannot know the answer.
    """
    mine = [name for name in bound if name not in _ROUTING]
    there = set(columns)
    if not mine:
        return ()
    known = [
        name for name in _NAMES if name in there and any(_may_answer(name, each.columns.get(name)) for each in samples)
    ]
    if known:
        return tuple(sorted(known, key=lambda name: name not in mine))
    return tuple(name for name in mine if any(map(_is_short, (sample.columns.get(name) for sample in samples))))


def is_well_known(column: str) -> bool:
    """Whether datasets call the right answer like that."""
    return column in _NAMES


def answer_block(text: str) -> str:
    """An answer in its tags; one that has them, after its reasoning or not, keeps its own."""
    own = _ANSWER.findall(text)
    return own[-1] if own else f"<answer>{text}</answer>"


def reference_text(value: object) -> str | None:
    """A cell as the text of an answer: the first of several solutions, a number as it is written; None: no answer."""
    if isinstance(value, str):
        several = _list_in(value)
        return reference_text(several) if several is not None else (value if value.strip() else None)
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return next(filter(None, map(reference_text, value)), None) if all(map(_is_text, value)) else str(list(value))
    return None


def _may_answer(name: str, value: object) -> bool:
    """Whether a cell under a well-known name has an answer; `code` may also be the code of a country."""
    text = reference_text(value)
    return text is not None and (name != "code" or is_program(text))


def _continued(sample: Sample, text: str) -> str | None:
    """The text below what the prompt begins, in a Python fence or as a whole; None: nothing that it completes."""
    prompt = sample.messages[-1].content
    wholes = (f"{begun.rstrip()}\n{text}" for begun in (*_FENCED.findall(prompt), prompt))
    return next(filter(is_program, wholes), None)


def _list_in(text: str) -> list[str] | None:
    """The texts of a JSON list of texts, which is how datasets write several programs."""
    if not text.lstrip().startswith('["'):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, list) and value and all(map(_is_text, value)) else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_short(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and 0 < len(value) <= _LONGEST)
