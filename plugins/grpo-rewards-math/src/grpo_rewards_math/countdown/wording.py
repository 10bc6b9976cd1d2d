"""How a Countdown problem is put into words: it asks for the tags that `format_reward` checks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from grpo_rewards_math.countdown.options import CountdownOptions

__all__ = ["TEMPLATES", "render"]

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
