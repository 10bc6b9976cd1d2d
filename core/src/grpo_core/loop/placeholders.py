"""Completions that hold a token which stands for an image.

The model has nothing to see at such a token, so nothing behind it means anything. Engines are told not to draw one; a
completion that has it all the same is not trained on, and what the trainer computes of it ends before the token.
"""

from __future__ import annotations

from collections.abc import Collection

from grpo_core.types import Completion

__all__ = ["has_placeholder", "without_placeholders"]


def has_placeholder(completion: Completion, reserved_ids: Collection[int]) -> bool:
    """Whether one of the reserved tokens is among the completion's."""
    return any(token in reserved_ids for token in completion.token_ids)


def without_placeholders(completion: Completion, reserved_ids: Collection[int]) -> int:
    """How many tokens of the completion come before the first reserved one."""
    return next(
        (place for place, token in enumerate(completion.token_ids) if token in reserved_ids),
        len(completion.token_ids),
    )
