"""Countdown rows -> samples: the prompt that states the problem and asks for the tags that `format_reward` checks.

Understands the columns of the known hub datasets (`nums` with `target`, or `nums` with `response`) and those that
`source` makes. The reward reads `nums` and `target`; every other column is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from grpo_core.api import BuildContext, DataError, Message, Preprocessor, Sample
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
        nums, target = _numbers(columns), _target(columns)
        history, system = columns.pop("history", None), columns.pop("system", None)
        prompt = Message(role="user", content=render(options, nums, target))
        opening = (Message(role="system", content=str(system)),) if system else ()
        return Sample(messages=(*opening, *_earlier_turns(history), prompt), columns=columns)

    return to_sample


def render(options: CountdownOptions, nums: Sequence[object], target: object) -> str:
    """State a problem in the wording that the options choose."""
    template = options.template or TEMPLATES[options.style]
    fields = {
        "{numbers}": (" " if options.style == "short" else ", ").join(map(str, nums)),
        "{target}": str(target),
        "{operations}": " ".join(options.operations),
        "{example}": f"(5 {options.operations[0]} 3) {options.operations[-1]} 2",
    }
    for field, text in fields.items():
        template = template.replace(field, text)
    return template


def _numbers(row: Mapping[str, object]) -> list[int | Fraction]:
    """The given numbers, from a list, an array, or the text of either (`[5, 4, 2]`, `5, 4, 2`)."""
    value = _cell(row, "nums")
    if isinstance(value, str):
        value = value.strip().strip("[]()").replace(",", " ").split()
    if not isinstance(value, Iterable):
        raise DataError(f"column nums: {value!r} is not a list of numbers")
    nums = [_number("nums", number) for number in value]
    if not nums:
        raise DataError("column nums: the list is empty, so no equation can be made")
    return nums


def _target(row: Mapping[str, object]) -> int | Fraction:
    return _number("target", _cell(row, "target"))


def _cell(row: Mapping[str, object], column: str) -> object:
    if column not in row:
        raise DataError(
            f"countdown needs a column {column}; the row has {', '.join(sorted(row)) or 'none'}",
            hint=f"Rename the column that holds it: --columns OLD={column}",
        )
    return row[column]


def _number(column: str, value: object) -> int | Fraction:
    """Read a number exactly, and write 11.0 as 11 (one float in a column makes floats of all)."""
    try:
        number = Fraction(str(value))
    except (ValueError, ZeroDivisionError) as error:
        raise DataError(f"column {column}: {value!r} is not a number") from error
    return int(number) if number.denominator == 1 else number


def _earlier_turns(history: object) -> list[Message]:
    """Turns of a `history` column: pairs of a question and its reply, or messages with role and content."""
    if not history:
        return []
    if not isinstance(history, Sequence) or isinstance(history, str):
        raise DataError(f"column history: {history!r} is not a list of turns")
    return [message for turn in history for message in _messages(turn)]


def _messages(turn: object) -> list[Message]:
    if isinstance(turn, Mapping) and {"role", "content"} <= turn.keys():
        return [Message(role=str(turn["role"]), content=str(turn["content"]))]
    if isinstance(turn, Sequence) and not isinstance(turn, str) and len(turn) == 2:
        return [Message(role="user", content=str(turn[0])), Message(role="assistant", content=str(turn[1]))]
    raise DataError(f"column history: {turn!r} is neither a [question, reply] pair nor a message with role and content")
