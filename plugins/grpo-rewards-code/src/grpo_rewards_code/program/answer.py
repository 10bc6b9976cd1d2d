"""What of a completion is said and not thought, and what of that stands in an answer block.

Tags inside a closed code fence belong to the program and mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grpo_rewards_code.program.fences import fences

__all__ = ["answer_block", "spoken_part"]

_TAG = re.compile(r"</?(?:think|answer)>")


def spoken_part(text: str, *, in_thought: bool = False) -> str | None:
    """What is said and not thought; None for a thought that never ends. `in_thought`: the prompt has opened it."""
    if in_thought or text.lstrip().startswith("<think>"):
        _, closed, text = text.partition("</think>")
        if not closed:
            return None
    return _without_thoughts(text)


def answer_block(spoken: str) -> str | None:
    """The content of the last answer block; one that never ends goes to the end. None where there is none."""
    starts, ends = [], []
    for tag, start, end in _tags(spoken):
        if tag == "<answer>":
            starts.append(end)
        elif tag == "</answer>":
            ends.append(start)
    if not starts:
        return None
    return spoken[starts[-1] : next((end for end in ends if end >= starts[-1]), len(spoken))]


def _without_thoughts(text: str) -> str:
    """Without further thoughts. Of one that is only closed, all before its end; of one only opened, all after."""
    said: list[str] = []
    depth = position = 0
    for tag, start, end in _tags(text):
        if tag == "<think>":
            if depth == 0:
                said.append(text[position:start])
            depth += 1
        elif tag == "</think>":
            if depth == 0:
                said.clear()
            depth = max(depth - 1, 0)
            position = end
    return "".join([*said, text[position:]] if depth == 0 else said)


def _tags(text: str) -> Iterator[tuple[str, int, int]]:
    """(tag, start, end) of the tags outside closed code fences."""
    closed = [fence for fence in fences(text) if fence.closed]
    index = 0
    for match in _TAG.finditer(text):
        while index < len(closed) and closed[index].end <= match.start():
            index += 1
        if index == len(closed) or match.start() < closed[index].start:
            yield match[0], match.start(), match.end()
