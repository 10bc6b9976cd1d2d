"""Inputs for a function, and the results of its reference solution: chosen so that simpler programs fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any

from grpo_rewards_code.basics.function import Function, program, run, trace
from grpo_rewards_code.basics.options import Kind

__all__ = ["behaviour", "draw_cases"]

_PATIENCE_DRAWS = 8
_FIXED_INPUTS = 40
_VOWELS, _CONSONANTS = "aeiou", "bcdfglmnprst"


def draw_cases(random: Random, function: Function, count: int) -> tuple[tuple[Any, Any], ...] | None:
    """`count` pairs of argument and result. Results differ, some are not the argument itself, and for each step some
    result is missed by the program that leaves it out. None: no such inputs were found, so the function is not worth
    asking for."""
    steps = function.expressions
    shorter = [[], *([*steps[:left], *steps[left + 1 :]] for left in range(len(steps)))]
    for _ in range(_PATIENCE_DRAWS):
        arguments = _distinct(random, function.kind, count)
        results = trace(steps, arguments)
        if not _all_equal(results) and not any(_same(arguments, results, few) for few in shorter):
            return tuple(zip(arguments, run(program(steps), arguments), strict=True))
    return None


def behaviour(function: Function) -> str:
    """Equal for functions that do the same: their results on fixed inputs, as text."""
    return repr((function.kind, trace(function.expressions, _fixed_inputs(function.kind))))


@cache
def _fixed_inputs(kind: Kind) -> tuple[Any, ...]:
    random = Random(f"fixed inputs {kind}")
    return tuple(_INPUT[kind](random) for _ in range(_FIXED_INPUTS))


def _distinct(random: Random, kind: Kind, count: int) -> list[Any]:
    arguments: list[Any] = []
    while len(arguments) < count:
        argument = _INPUT[kind](random)
        if argument not in arguments:
            arguments.append(argument)
    return arguments


def _same(arguments: list[Any], results: list[Any], steps: list[str]) -> bool:
    """Whether a program that leaves a step out has the same results. Where the types no longer fit it has none."""
    try:
        return repr(trace(steps, arguments)) == repr(results)
    except (TypeError, AttributeError):
        return False


def _all_equal(results: list[Any]) -> bool:
    return all(result == results[0] for result in results)


def _numbers(random: Random) -> list[int]:
    """Short lists of small numbers, so that repeats and matches happen; now and then none at all."""
    return [random.randint(-9, 20) for _ in range(random.choice((0, 3, 4, 5, 6, 7, 8)))]


def _text(random: Random) -> str:
    """A few pronounceable words, some with a capital, now and then a palindrome."""
    if random.random() < 0.25:
        half = _word(random).lower()
        return half + half[::-1]
    return " ".join(_word(random) for _ in range(random.randint(1, 4)))


def _word(random: Random) -> str:
    word = "".join(random.choice(_CONSONANTS) + random.choice(_VOWELS) for _ in range(random.randint(1, 3)))
    return word.capitalize() if random.random() < 0.4 else word


def _number(random: Random) -> int:
    return random.choice((random.randint(-9, 20), random.randint(-99, 999)))


_INPUT: Mapping[Kind, Callable[[Random], Any]] = {"list": _numbers, "string": _text, "arithmetic": _number}
