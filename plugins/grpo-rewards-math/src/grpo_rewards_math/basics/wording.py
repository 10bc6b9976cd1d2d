"""How a problem of `math_basics` is put into words: it asks for the tags that `format_reward` checks."""

from __future__ import annotations

import re

from grpo_rewards_math.basics.options import MathBasicsOptions
from grpo_rewards_math.basics.problem import Problem

__all__ = ["render"]

_FULL = {
    "expression": "Calculate {question}.",
    "equation": "Solve {question} for x.",
    "remainder": "What is {question}, the remainder of the division?",
    "fraction": "Calculate {question} exactly, as a fraction in lowest terms.",
}
_FORM = (
    "\nFirst reason step by step inside <think></think>. Then write the result, and nothing else, inside "
    "<answer></answer>. An answer looks like this: <answer>12345</answer>"
)
_SHORT = "{question} <think></think><answer></answer>"


def render(problem: Problem, options: MathBasicsOptions) -> str:
    """State a problem in the wording that the options choose."""
    if options.style == "short":
        return _SHORT.format(question=problem.question)
    # A fraction's own bar stays close; every other sign gets room.
    question = re.sub(r"(?<=[\dx)])([-+*=])(?=[\dx(-])", r" \1 ", problem.question)
    return _FULL[problem.kind].format(question=question) + _FORM
