"""`toolbench`: is the tool called that the reference calls, with the same arguments?

Both are texts in the ReAct form; what counts is the call at their end:

    Action: name
    Action Input: {"key": "value"}

A call that shares most of its arguments with the right one is still a wrong call: nothing is paid for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["toolbench"]

_LABELS = ("Action:", "Action Input:", "Observation:")


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    arguments: str


def toolbench(
    completions: Sequence[str], solution: Sequence[object], prompts: Sequence[str] | None = None
) -> list[float | None]:
    """1.0 when the completion's one call has the tool and the arguments of the call in `solution`, else 0.0.

    Arguments are compared as JSON values: key order and blanks do not matter, types do, 1 is 1.0. Arguments that are
    no JSON in the reference are compared as text, blanks aside. None where `solution` has no call. The thinking does
    not count, and a completion that writes its own `Observation:` or calls twice scores 0.0.
    """
    opened = [prompt.rstrip().endswith("<think>") for prompt in prompts or [""] * len(completions)]
    rows = zip(completions, solution, opened, strict=True)
    return [_score(text, reference, in_thought) for text, reference, in_thought in rows]


def _score(completion: str, solution: object, in_thought: bool) -> float | None:
    reference = _call(solution, in_thought=False) if isinstance(solution, str) else None
    if reference is None:
        return None
    made = _call(completion, in_thought=in_thought)
    return float(made is not None and made.tool == reference.tool and _same(reference.arguments, made.arguments))


def _call(text: str, *, in_thought: bool) -> _Call | None:
    """The one call after the thinking; None for none, for several, and for one with an observation."""
    _, closed, after = text.rpartition("</think>")
    if (in_thought or "<think>" in after) and (not closed or "<think>" in after):
        return None
    lines = after.strip().splitlines()
    places = [(i, label) for i, line in enumerate(lines) for label in _LABELS if line.strip().startswith(label)]
    if [label for _, label in places] != ["Action:", "Action Input:"]:
        return None
    (first, _), (second, _) = places
    tool = lines[first].strip().removeprefix("Action:").strip()
    arguments = "\n".join(lines[second:]).strip().removeprefix("Action Input:").strip()
    between = "".join(lines[first + 1 : second]).strip()
    return _Call(tool, arguments) if tool and not between else None


def _same(reference: str, made: str) -> bool:
    try:
        wanted = _json(reference)
    except (ValueError, RecursionError):
        return reference.split() == made.split()
    try:
        return _same_values(wanted, _json(made))
    except (ValueError, RecursionError):
        return False


def _json(text: str) -> object:
    """Strict JSON: a key twice would be two guesses, and NaN equals nothing."""
    return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_number)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _same_values(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same_values(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same_values, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
