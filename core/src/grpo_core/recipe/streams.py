"""Datasets that are read while they are used: what a reference says of that, and what a run then needs."""

from __future__ import annotations

from collections.abc import Sequence

from grpo_core.errors import UsageError
from grpo_core.plugins.references import Reference
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.recipe.problems import Problems
from grpo_core.recipe.schema import Recipe

__all__ = ["STREAM_DETAILS", "buffer_rows", "check_streams"]

STREAM_DETAILS = ("streaming", "buffer")
"""What may follow `?` of a Hugging Face id, beside subset and split."""
_DEFAULT_BUFFER_ROWS = 1000


def buffer_rows(reference: Reference) -> int | None:
    """How many rows are held and shuffled at a time; None: all are read before the run.

    Example: 5000 for `hf:owner/name?streaming=true&buffer=5000`. Raises `UsageError` for other values.
    """
    streaming, buffer = (reference.details.get(key) for key in STREAM_DETAILS)
    if streaming not in (None, "true", "false"):
        raise UsageError(f"'{reference.text}': streaming is true or false, not '{streaming}'")
    if streaming != "true":
        if buffer is not None:
            raise UsageError(f"'{reference.text}': a buffer is for rows that are streamed", hint="Add streaming=true.")
        return None
    if reference.hub != "hf":
        raise UsageError(f"'{reference.text}': only Hugging Face datasets are streamed", hint="Remove streaming=true.")
    if reference.rows is not None:
        raise UsageError(
            f"'{reference.text}': #{reference.rows} draws rows of the whole dataset, and a stream has no whole",
            hint="Remove one of the two; run.steps says how many prompts are asked.",
        )
    if buffer is not None and not (buffer.isascii() and buffer.isdigit() and int(buffer) > 0):
        raise UsageError(f"'{reference.text}': buffer is a number of rows of at least 1, not '{buffer}'")
    return int(buffer or _DEFAULT_BUFFER_ROWS)


def check_streams(recipe: Recipe, datasets: Sequence[PlannedDataset], found: Problems) -> None:
    """Note what cannot be derived for a stream, whose number of rows nobody knows."""
    streamed = [dataset for dataset in datasets if dataset.buffer_rows is not None]
    if not streamed:
        return
    if recipe.run.steps is None:
        found.add("run.steps", f"required, since {streamed[0].reference} is streamed and nobody knows its length")
    for dataset in streamed:
        if dataset.name and dataset.weight is None:
            found.add(f"dataset.mix.{dataset.name}.weight", "required, since its rows are streamed and not counted")
