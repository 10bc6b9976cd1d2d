"""`format_reward`: is a completion one think block and one answer block, and nothing else?

Tags are counted, not matched by a pattern: a lazy pattern over many unfinished blocks takes quadratic time.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["format_reward"]

_TAGS = ("<think>", "</think>", "<answer>", "</answer>")


def format_reward(completions: Sequence[str], prompts: Sequence[str] | None = None) -> list[float]:
    """1.0 for exactly one `<think>…</think>` followed by exactly one `<answer>…</answer>`, else 0.0.

    White space around and between the blocks is layout. A `<think>` with which the prompt ends counts as the
    completion's own. What the blocks hold is not looked at, but for further tags.
    """
    starts = ["<think>" if prompt.rstrip().endswith("<think>") else "" for prompt in prompts or [""] * len(completions)]
    return [float(_well_formed(start + text)) for start, text in zip(starts, completions, strict=True)]


def _well_formed(text: str) -> bool:
    text = text.strip()
    if any(text.count(tag) != 1 for tag in _TAGS):
        return False
    thinking, _, rest = text.partition("</think>")
    return thinking.startswith("<think>") and rest.lstrip().startswith("<answer>") and rest.endswith("</answer>")
