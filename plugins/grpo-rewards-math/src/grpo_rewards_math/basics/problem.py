"""One problem of `math_basics`, with its result and the steps to it. Results are exact: whole numbers or fractions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from grpo_rewards_math.basics.expression import draw_expression
from grpo_rewards_math.basics.options import Kind, MathBasicsOptions

__all__ = ["Problem", "draw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is asked and what is right."""

    kind: Kind
    """Which sort of problem."""
    question: str
    """In signs, without blanks around operations: `7+3*4`, `3*x+4=19`, `17 mod 5`, `1/2+1/3`."""
    steps: tuple[str, ...]
    """Single operations that lead to the result: `3*4=12`, `7+12=19`."""
    solution: str
    """The result: `19`, `-5/6`."""
    mistaken: tuple[str, ...]
    """The steps of the usual mistake, whose last value it takes for the result. Now and then that is right."""


def draw(random: Random, options: MathBasicsOptions) -> Problem:
    """A random problem of one of the kinds that the options name."""
    return _DRAW[options.kinds[random.randrange(len(options.kinds))]](random, options)


def _expression(random: Random, options: MathBasicsOptions) -> Problem:
    drawn = draw_expression(random, numbers=options.numbers, max_value=options.max_value)
    steps, result = drawn.solve()
    mistaken, _ = drawn.from_left_to_right()
    return Problem(kind="expression", question=drawn.text, steps=steps, solution=str(result), mistaken=mistaken)


def _equation(random: Random, options: MathBasicsOptions) -> Problem:
    """`factor*x+shift=right`; the usual mistake forgets to divide."""
    factor, x = random.randint(2, min(options.max_value, 12)), random.randint(1, options.max_value)
    shift, sign = random.randint(1, options.max_value), random.choice("+-")
    product, undo = factor * x, "-" if sign == "+" else "+"
    right = product + shift if sign == "+" else product - shift
    first = f"{right}{undo}{shift}={product}"
    return Problem(
        kind="equation",
        question=f"{factor}*x{sign}{shift}={right}",
        steps=(first, f"{product}/{factor}={x}"),
        solution=str(x),
        mistaken=(first,),
    )


def _remainder(random: Random, options: MathBasicsOptions) -> Problem:
    """The usual mistake takes the quotient for the answer."""
    divisor = random.randint(2, options.max_value)
    quotient, rest = random.randint(1, 9), random.randrange(divisor)
    whole = quotient * divisor
    return Problem(
        kind="remainder",
        question=f"{whole + rest} mod {divisor}",
        steps=(f"{quotient}*{divisor}={whole}", f"{whole + rest}-{whole}={rest}"),
        solution=str(rest),
        mistaken=(f"{whole}/{divisor}={quotient}",),
    )


def _fraction(random: Random, options: MathBasicsOptions) -> Problem:
    """The usual mistake adds numerators and denominators."""
    a, c = random.randint(1, options.max_value), random.randint(1, options.max_value)
    b, d = random.randint(2, options.max_value), random.randint(2, options.max_value)
    sign = random.choice("+-")
    over = a * d + c * b if sign == "+" else a * d - c * b
    result = Fraction(over, b * d)
    wrong = (a + c if sign == "+" else a - c, b + d)
    return Problem(
        kind="fraction",
        question=f"{a}/{b}{sign}{c}/{d}",
        steps=(
            f"{a}*{d}={a * d}",
            f"{c}*{b}={c * b}",
            f"{a * d}{sign}{c * b}={over}",
            f"{b}*{d}={b * d}",
            f"{over}/{b * d}={result}",
        ),
        solution=str(result),
        mistaken=(f"{a}{sign}{c}={wrong[0]}", f"{b}+{d}={wrong[1]}", f"{wrong[0]}/{wrong[1]}={Fraction(*wrong)}"),
    )


_DRAW: Mapping[Kind, Callable[[Random, MathBasicsOptions], Problem]] = {
    "expression": _expression,
    "equation": _equation,
    "remainder": _remainder,
    "fraction": _fraction,
}
