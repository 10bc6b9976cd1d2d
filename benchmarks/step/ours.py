"""The reward of the comparison for grpoctl."""

from __future__ import annotations

from work import score


def length_mod(completions: list[str]) -> list[float]:
    """The length modulo 7, as a share."""
    return [score(text) for text in completions]
