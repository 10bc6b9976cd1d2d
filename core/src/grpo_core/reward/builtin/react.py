"""`react_format`: is a completion a thought and one call of a tool, in the ReAct form?

    <think>…</think>
    Action: name
    Action Input: arguments

The completion ends with the call: the tool's `Observation:` comes from outside, and one that the model writes itself
is made up. That scores 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["react_format"]

_LABELS = ("Action:", "Action Input:", "Observation:")


def react_format(completions: Sequence[str], prompts: Sequence[str] | None = None) -> list[float]:
    """1.0 for one think block, one `Action:` with a name, one `Action Input:` after it, and nothing else.

    The input may go on over several lines. A `<think>` with which the prompt ends counts as the completion's own.
    """
    starts = ["<think>" if prompt.rstrip().endswith("<think>") else "" for prompt in prompts or [""] * len(completions)]
    return [float(_well_formed(start + text)) for start, text in zip(starts, completions, strict=True)]


def _well_formed(text: str) -> bool:
    text = text.strip()
    if text.count("<think>") != 1 or text.count("</think>") != 1 or not text.startswith("<think>"):
        return False
    lines = [line.strip() for line in text.partition("</think>")[2].strip().splitlines()]
    labels = [label for line in lines for label in _LABELS if line.startswith(label)]
    if labels != ["Action:", "Action Input:"] or not lines[0].startswith("Action:"):
        return False
    return bool(lines[0].removeprefix("Action:").strip()) and lines[1].startswith("Action Input:")
