"""The rows of a dataset for an audit: those a run would train on, a fair part of them.

Place in the flow: settings → planned dataset → samples → **some of them**.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grpo_core.data.samples import LoadedSamples, load_samples
from grpo_core.errors import UsageError
from grpo_core.plugins.catalog import Catalog
from grpo_core.recipe.datasets import plan_dataset, training_datasets
from grpo_core.recipe.paths import read_text_setting
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.recipe.schema import Recipe
from grpo_core.types import BuildContext, Sample

__all__ = ["SomeRows", "some_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeRows:
    """Some rows of a dataset."""

    samples: tuple[Sample, ...]
    """In the order of their rows."""
    total: int
    """Rows that there are; of a stream, those that were read."""
    columns: frozenset[str]
    """Of the whole dataset."""
    warnings: tuple[str, ...]
    """What was noticed when it was read."""


def some_rows(recipe: Recipe, count: int, *, catalog: Catalog) -> SomeRows:
    """Up to `count` rows, evenly spread over the dataset: files are often sorted. Raises as reading it for a run."""
    entries = list(training_datasets(recipe.dataset).values())
    if len(entries) != 1:
        raise UsageError(f"{len(entries)} datasets are named", hint="Audit on one at a time.")
    system = entries[0].system and read_text_setting(entries[0].system)
    dataset = plan_dataset(entries[0].model_copy(update={"system": system}), catalog=catalog)
    loaded = _loaded(dataset, recipe.run.seed)
    return SomeRows(
        samples=_spread(loaded.samples, count),
        total=len(loaded.samples),
        columns=loaded.columns,
        warnings=loaded.warnings,
    )


def _loaded(dataset: PlannedDataset, seed: int) -> LoadedSamples:
    """All rows; of a stream its first block."""
    context = BuildContext(seed=seed)
    if dataset.buffer_rows is None:
        return load_samples(dataset, split="train", seed=seed, context=context)
    from grpo_core.data.stream import open_samples  # imports transformers, which the rest does without

    return open_samples(dataset, "train", context).first_block()


def _spread(samples: Sequence[Sample], count: int) -> tuple[Sample, ...]:
    taken = min(count, len(samples))
    return tuple(samples[place * len(samples) // taken] for place in range(taken))
