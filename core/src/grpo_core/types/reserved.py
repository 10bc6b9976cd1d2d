"""The parameter names of a reward that mean the run's own values, so no dataset column may carry them."""

from __future__ import annotations

__all__ = ["RESERVED_NAMES"]

RESERVED_NAMES = frozenset(
    {
        "prompts",
        "messages",
        "completions",
        "completion_ids",
        "finish_reasons",
        "sample_ids",
        "step",
        "epoch",
        "progress",
        "trainer_state",
        "record",
    }
)
"""Known to reward binding and to the data stage, which refuses a column of such a name."""
