"""Rows of one dataset -> samples: columns renamed, then its preprocessor, or the mapping of well-known columns.

    rows → renamed columns → preprocessor or mapping → system prompt → Sample

No tokenizer is needed, so rewards can be bound to the columns before anything large is loaded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from grpo_core.data.columns import Mapped, check_names, check_renames, map_row, rename, with_system
from grpo_core.data.given import check_given
from grpo_core.data.images import locate
from grpo_core.data.progress import tracked
from grpo_core.data.row import Row
from grpo_core.data.sources import Purpose, read_rows
from grpo_core.errors import DataError, GrpoError, PluginError
from grpo_core.model.pixels import require_image
from grpo_core.plugins.faults import describe
from grpo_core.plugins.targets import build_target
from grpo_core.protocols import Preprocessor
from grpo_core.recipe.plan import PlannedComponent, PlannedDataset
from grpo_core.types import BuildContext, Sample

__all__ = [
    "DATASET_COLUMN",
    "OPTIONS_COLUMN",
    "TOOLS_COLUMN",
    "LoadedSamples",
    "SampleMaker",
    "load_samples",
    "prompt_key",
    "with_all",
]

DATASET_COLUMN = "dataset"
"""In a mix, the name of the dataset that a sample comes from."""
TOOLS_COLUMN = "tools"
"""Function schemas that the chat template writes into the prompt."""
OPTIONS_COLUMN = "chat_template_kwargs"
"""Variables of the chat template for this row."""
_PREPROCESSED = "the preprocessor dropped them"
_BAD_IMAGE = "an image of them is missing or broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSamples:
    """The samples of one dataset."""

    samples: tuple[Sample, ...]
    """In the order of their rows; each has every column of `columns`, None where its row had none."""
    columns: frozenset[str]
    """All columns that some sample has: what rewards can bind to."""
    dropped: Mapping[str, int]
    """Reason -> number of rows left out."""
    warnings: tuple[str, ...] = ()
    """What a person should know, counted."""


def load_samples(
    dataset: PlannedDataset, *, split: Purpose, seed: int, context: BuildContext, limit: int | None = None
) -> LoadedSamples:
    """Read a dataset (its first `limit` rows) and make samples of its rows.

    Raises `DataError` that names the row and the column for the first row that cannot be used, and when no row is left.
    """
    rows = read_rows(dataset, split=split, seed=seed, limit=limit)
    loaded = SampleMaker(dataset, split, context)(rows)
    if not loaded.samples:
        reasons = " and ".join(loaded.dropped)
        what = f"no row is left: {len(rows)} were read, {reasons}" if rows else "there is no row in it"
        raise DataError(f"{dataset.reference}: {what}")
    return loaded


class SampleMaker:
    """Makes samples of a dataset's rows: all of them at once, or block by block."""

    def __init__(self, dataset: PlannedDataset, split: Purpose, context: BuildContext) -> None:
        self._dataset = dataset
        self._id = f"{split}-{dataset.name}".rstrip("-")
        self._system = (dataset.system or "").strip()
        self._to_sample = _mapper(dataset.preprocess, context, dataset.columns.values())

    def __call__(self, rows: Sequence[Row]) -> LoadedSamples:
        """The samples of these rows.

        A sample's id is the split, in a mix the dataset's name, and the position of its row: `train-000012`,
        `train-gsm8k-000012`. Raises `DataError` that names the row and the column.
        """
        self._check_renames(rows)
        samples: list[Sample] = []
        notes: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        for row in tracked(rows, total=len(rows), what="making samples"):
            mapped = self._map(row)
            reason = _PREPROCESSED if mapped is None else self._fault_of_images(mapped.sample, row)
            if mapped is None or reason is not None:
                dropped[str(reason)] += 1
                continue
            notes.update(mapped.notes)
            samples.append(replace(mapped.sample, id=f"{self._id}-{row.index:06d}"))
        columns = frozenset(name for sample in samples for name in sample.columns)
        return LoadedSamples(
            samples=tuple(with_all(sample, columns) for sample in samples),
            columns=columns,
            dropped=dropped,
            warnings=tuple(f"{self._dataset.reference}: {note} ({count} rows)" for note, count in notes.items()),
        )

    def _fault_of_images(self, sample: Sample, row: Row) -> str | None:
        """Why a row is left out for its images; None: it stays. Raises `DataError` where that is the choice."""
        try:
            for image in sample.images:
                require_image(image)
        except DataError as error:
            if self._dataset.bad_images == "drop":
                return _BAD_IMAGE
            raise DataError(f"{row.place}: {error.message}", hint=error.hint) from error
        return None

    def _check_renames(self, rows: Sequence[Row]) -> None:
        try:
            check_renames((name for row in rows for name in row.columns), self._dataset.columns)
        except DataError as error:
            where = f"{self._dataset.reference}: " if self._dataset.name else ""
            raise DataError(f"{where}{error.message}", hint=error.hint) from error

    def _map(self, row: Row) -> Mapped | None:
        """The sample of a row, checked; errors say which row it is."""
        try:
            mapped = self._to_sample(replace(row, columns=rename(row.columns, self._dataset.columns)))
            if mapped is None:
                return None
            check_names(mapped.sample.columns)
            _check_prompt(mapped.sample)
            sample = _named(mapped.sample, self._dataset.name)
        except DataError as error:
            raise DataError(f"{row.place}: {error.message}", hint=error.hint) from error
        images = tuple(locate(image, row.folder) for image in sample.images)
        return replace(mapped, sample=replace(with_system(sample, self._system), images=images))


def prompt_key(sample: Sample) -> object:
    """What makes two samples the same question."""
    given = {name: sample.columns.get(name) for name in (TOOLS_COLUMN, OPTIONS_COLUMN)}
    return sample.messages, sample.images, json.dumps(given, sort_keys=True, default=repr)


def with_all(sample: Sample, columns: Iterable[str]) -> Sample:
    """The sample with all of these columns, None where it had none."""
    missing = [name for name in columns if name not in sample.columns]
    return replace(sample, columns={**sample.columns, **dict.fromkeys(missing)}) if missing else sample


def _mapper(
    component: PlannedComponent | None, context: BuildContext, explicit: Collection[str]
) -> Callable[[Row], Mapped | None]:
    """What makes a sample of a row with renamed columns: the preprocessor, else the well-known columns."""
    if component is None:
        return lambda row: map_row(row.columns, explicit=explicit)
    built = build_target(component.target, component.options_model, component.options, context)
    if not callable(built):
        raise PluginError(f"'{component.name}' is not a preprocessor: it is {built!r}, not a function of a row")
    preprocess, name = cast(Preprocessor, built), component.name

    def to_sample(row: Row) -> Mapped | None:
        try:
            sample = preprocess(dict(row.columns))
        except GrpoError:
            raise
        except (Exception, SystemExit) as error:  # whatever a plugin's code raises
            raise DataError(f"the preprocessor '{name}' failed: {describe(error)}") from error
        checked = check_given(sample, name)
        return None if checked is None else Mapped(sample=checked)

    return to_sample


def _named(sample: Sample, dataset: str) -> Sample:
    """The sample with the name of its dataset, where it is one of several."""
    if not dataset:
        return sample
    if DATASET_COLUMN in sample.columns:
        raise DataError(
            f"column {DATASET_COLUMN}: in a mix, this column has the name of the dataset",
            hint=f"Rename the column: --columns {DATASET_COLUMN}=row_{DATASET_COLUMN}.",
        )
    return replace(sample, columns={**sample.columns, DATASET_COLUMN: dataset})


def _check_prompt(sample: Sample) -> None:
    """Raise `DataError` for a prompt that asks nothing or cannot be encoded."""
    if not sample.messages or sample.messages[-1].role in ("assistant", "system"):
        roles = ", ".join(message.role for message in sample.messages) or "no message"
        raise DataError(f"the prompt must end with a user message; it has {roles}")
    if not sample.messages[-1].content.strip():
        raise DataError("the last message of the prompt is empty")
    for message in sample.messages:
        try:
            message.content.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(f"the prompt has half a character (a lone surrogate): {error}") from error
