"""`countdown_reward`: does the answer make the target of the given numbers?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from grpo_rewards_math.countdown.expression import Expression, NotAnExpressionError, parse, plain
from grpo_rewards_math.countdown.numbers import read_number, read_numbers

__all__ = ["countdown_reward"]


def countdown_reward(
    completions: Sequence[str],
    nums: Sequence[object],
    target: Sequence[object],
    prompts: Sequence[str] | None = None,
) -> list[float | None]:
    """1.0 when the answer uses every given number exactly once and its exact value is the target, else 0.0.

    The answer is the content of the last `<answer>` block after the thinking: + - * / and parentheses over numbers,
    also as × · ÷ − and LaTeX; `= target` may follow. None where `nums` or `target` of a row cannot be read.
    """
    opened = [prompt.rstrip().endswith("<think>") for prompt in prompts or [""] * len(completions)]
    rows = zip(completions, nums, target, opened, strict=True)
    return [_score(text, numbers, value, in_thought) for text, numbers, value, in_thought in rows]


def _score(completion: str, nums: object, target: object, in_thought: bool) -> float | None:
    numbers, value = read_numbers(nums), read_number(target)
    if numbers is None or value is None:
        return None
    answer = _answer(completion, in_thought)
    return float(answer is not None and _solves(answer, numbers, value))


def _answer(completion: str, in_thought: bool) -> str | None:
    """The last answer block outside the thinking; a thought that never ends holds no answer."""
    _, closed, after = completion.rpartition("</think>")
    if in_thought and not closed:
        return None
    spoken = after.partition("<think>")[0]
    end = spoken.rfind("</answer>")
    start = spoken.rfind("<answer>", 0, max(end, 0))
    return spoken[start + len("<answer>") : end] if start >= 0 else None


def _solves(answer: str, numbers: Sequence[Fraction], target: Fraction) -> bool:
    try:
        left, *right = plain(answer).split("=")
        made = parse(left, max_literals=len(numbers))
        repeated = [parse(side, max_literals=1) for side in right]
    except NotAnExpressionError:
        return False
    says_target = all(side.value == target for side in repeated)
    return len(right) <= 1 and says_target and made.value == target and _uses(made, numbers)


def _uses(made: Expression, numbers: Sequence[Fraction]) -> bool:
    """Whether the expression's numbers are the given ones, each once.

    A minus directly before a number is part of a given negative number, or an operation on a given positive one.
    """
    if len(made.literals) != len(numbers):
        return False
    written = Counter(literal.value for literal in made.literals)
    without_sign = Counter(literal.value for literal in made.literals if not literal.signed)
    positive = Counter(number for number in numbers if number >= 0)
    return written == Counter(map(abs, numbers)) and without_sign <= positive
