"""Countdown rows -> samples: the problem as the last turn, earlier turns and solved examples before it.

Understands the columns of the known hub datasets (`nums` with `target`, or `nums` with `response`) and those that
`source` makes. The reward reads `nums` and `target`; every other column is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from grpo_core.api import BuildContext, DataError, Message, Preprocessor, Sample
from grpo_rewards_math.countdown.examples import solved_turns
from grpo_rewards_math.countdown.numbers import read_number, read_numbers
from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.wording import render

__all__ = ["make"]


def make(options: CountdownOptions, context: BuildContext) -> Preprocessor:
    """Build the preprocessor of the dataset `countdown`."""
    examples = solved_turns(options)

    def to_sample(row: Mapping[str, object], /) -> Sample:
        columns = dict(row)
        if "target" not in columns and "response" in columns:
            columns["target"] = columns.pop("response")
        prompt = render(options, _given_numbers(columns), _target(columns))
        earlier, system = _earlier_turns(columns.pop("history", None)), columns.pop("system", None)
        opening = [Message(role="system", content=str(system))] if system else []
        return Sample(messages=(*opening, *examples, *earlier, Message(role="user", content=prompt)), columns=columns)

    return to_sample


def _given_numbers(row: Mapping[str, object]) -> Sequence[Fraction]:
    cell = _cell(row, "nums")
    nums = read_numbers(cell)
    if not nums:
        raise DataError(
            f"column nums: {cell!r} is not a list of numbers", hint="Write the given numbers as a list: [5, 3, 2]."
        )
    return nums


def _target(row: Mapping[str, object]) -> Fraction:
    cell = _cell(row, "target")
    target = read_number(cell)
    if target is None:
        raise DataError(f"column target: {cell!r} is not a number", hint="Write the target as a number: 17.")
    return target


def _cell(row: Mapping[str, object], column: str) -> object:
    if column not in row:
        raise DataError(
            f"countdown needs a column {column}; the row has {', '.join(sorted(row)) or 'none'}",
            hint=f"If another column holds it, rename that: --columns OLD={column}.",
        )
    return row[column]


def _earlier_turns(history: object) -> list[Message]:
    """The turns of a `history` column: [question, reply] pairs, or messages with role and content."""
    if not history:
        return []
    if not isinstance(history, Sequence) or isinstance(history, str):
        raise DataError(
            f"column history: {history!r} is not a list of turns",
            hint="Write [[question, reply], …], or rename the column if it means something else.",
        )
    return [message for turn in history for message in _messages(turn)]


def _messages(turn: object) -> list[Message]:
    if isinstance(turn, Mapping) and {"role", "content"} <= turn.keys():
        return [Message(role=str(turn["role"]), content=str(turn["content"]))]
    if isinstance(turn, Sequence) and not isinstance(turn, str) and len(turn) == 2:
        return [Message(role="user", content=str(turn[0])), Message(role="assistant", content=str(turn[1]))]
    raise DataError(
        f"column history: {turn!r} is not a turn",
        hint='Write a turn as [question, reply], or as {"role": "user", "content": "…"}.',
    )
