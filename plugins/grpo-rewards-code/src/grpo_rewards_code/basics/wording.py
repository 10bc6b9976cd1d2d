"""How a function of `code_basics` is put into words: it asks for the tags that `format_reward` checks."""

from __future__ import annotations

from grpo_rewards_code.basics.function import FUNCTION_NAME, Function
from grpo_rewards_code.basics.options import CodeBasicsOptions, Form

__all__ = ["render"]

_TAKES = {"list": "a list of whole numbers", "string": "a text", "arithmetic": "a whole number"}
_LINES = {
    "list": "a line of whole numbers with blanks between them, which may be empty",
    "string": "a line of text",
    "arithmetic": "a line with one whole number",
}
_PRINTS = "prints the result: a list as numbers with blanks between them, anything else as Python's print shows it"
_FORM = (
    "\nFirst reason inside <think></think>. Then write the program, and nothing else, inside <answer></answer>, as a "
    "Python block:\n<answer>\n```python\n…\n```\n</answer>"
)
_SHORT = "{kind}: {steps} <think></think><answer></answer>"


def render(function: Function, form: Form, options: CodeBasicsOptions) -> str:
    """State a problem in the wording that the options choose."""
    steps = "; ".join(step.words for step in function.steps)
    if options.style == "short":
        how = "" if form == "call" else f"{form} "
        return _SHORT.format(kind=how + function.kind, steps=steps)
    if form == "stdin":
        opening = f"Write a Python program that reads {_LINES[function.kind]}, and {_PRINTS}."
    else:
        opening = (
            f"Write a Python function `{FUNCTION_NAME}` that takes {_TAKES[function.kind]} and returns the result."
        )
    return f"{opening} What it does, in this order: {steps}.{_FORM}"
