"""Countdown rows -> samples: the prompt that states the problem and asks for the tags that `format_reward` checks.

Understands the columns of the known hub datasets (`nums` with `target`, or `nums` with `response`) and those that
`source` makes. The reward reads `nums` and `target`; every other column is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from grpo_core.api import BuildContext, DataError, Message, Preprocessor, Sample
from grpo_rewards_math.countdown.numbers import read_number, read_numbers
from grpo_rewards_math.countdown.options import CountdownOptions

__all__ = ["TEMPLATES", "make", "render"]

TEMPLATES = {
    "full": (
        "Here are some numbers: {numbers}. Combine them into an equation whose value is {target}. "
        "The allowed operations are {operations}, parentheses are allowed too, and each number can only be used once; "
        "none may be left over.\n"
        "First reason step by step inside <think></think>. Then write the final equation, and nothing else, inside "
        "<answer></answer>. An answer looks like this: <answer>{example}</answer>"
    ),
    "short": "{numbers} = {target} <think></think><answer></answer>",
}


def make(options: CountdownOptions, context: BuildContext) -> Preprocessor:
    """Build the preprocessor of the dataset `countdown`."""

    def to_sample(row: Mapping[str, object], /) -> Sample:
        columns = dict(row)
        if "target" not in columns and "response" in columns:
            columns["target"] = columns.pop("response")
        prompt = render(options, _given_numbers(columns), _target(columns))
        earlier, system = _earlier_turns(columns.pop("history", None)), columns.pop("system", None)
        opening = [Message(role="system", content=str(system))] if system else []
        return Sample(messages=(*opening, *earlier, Message(role="user", content=prompt)), columns=columns)

    return to_sample


def render(options: CountdownOptions, nums: Sequence[int | Fraction], target: int | Fraction) -> str:
    """State a problem in the wording that the options choose."""
    text, operations = options.template or TEMPLATES[options.style], options.operations
    fields = {
        "{numbers}": (" " if text == TEMPLATES["short"] else ", ").join(map(str, nums)),
        "{target}": str(target),
        "{operations}": " ".join(operations),
        "{example}": f"(5 {operations[0]} 3) {operations[-1]} 2",
    }
    for field, value in fields.items():
        text = text.replace(field, value)
    return text


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
