"""What is allowed and probably not meant, seen on the rendered prompts before a model loads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grpo_core.data.prompts import Prompt

__all__ = ["preflight_warnings"]

_FORMAT_REWARD = "grpo-core/format_reward"
_TAGS = ("<think>", "<answer>")


def preflight_warnings(reward_names: Iterable[str], prompts: Sequence[Prompt]) -> tuple[str, ...]:
    """Warn when `format_reward` is among the rewards (qualified names) and no prompt names the tags it wants: a model
    that never heard of them is never paid, so it learns nothing."""
    if _FORMAT_REWARD not in reward_names or not prompts:
        return ()
    if any(all(tag in prompt.text for tag in _TAGS) for prompt in prompts):
        return ()
    return (
        "format_reward wants <think>…</think> and <answer>…</answer>, and no prompt asks for them; "
        "say so in the prompt or in a system prompt (--system)",
    )
