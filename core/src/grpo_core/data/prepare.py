"""Datasets -> samples for training and for evaluation, which never share a prompt. No tokenizer is needed, so rewards
can be bound to the columns before anything large is loaded.

    rows → renamed columns → preprocessor or the mapping of well-known columns → Sample
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import cast

from grpo_core.data.columns import Mapped, check_names, check_renames, map_row, rename, with_system
from grpo_core.data.images import locate
from grpo_core.data.row import Row
from grpo_core.data.sources import Purpose, read_rows, without_sampling
from grpo_core.errors import DataError, GrpoError, PluginError
from grpo_core.plugins.faults import describe
from grpo_core.plugins.targets import build_target
from grpo_core.protocols import Preprocessor
from grpo_core.recipe.plan import LaunchPlan, PlannedComponent, PlannedDataset
from grpo_core.recipe.schema import DataSettings
from grpo_core.types import BuildContext, Sample

__all__ = ["Data", "LoadedSamples", "load_data", "load_samples"]

_PREPROCESSED = "the preprocessor dropped them"
_IN_EVALUATION = "their prompt is an evaluation prompt too"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The samples of a run."""

    train: tuple[Sample, ...]
    """Never empty."""
    evaluation: tuple[Sample, ...]
    """No prompt of it is in `train`. Empty: no evaluation was asked for."""
    columns: frozenset[str]
    """Of the training samples: what rewards can bind to."""
    dropped: Mapping[str, int]
    """Reason -> number of rows left out of both."""
    warnings: tuple[str, ...]
    """What is allowed and probably not meant."""


def load_data(plan: LaunchPlan, context: BuildContext) -> Data:
    """Read the training and evaluation samples of a run.

    Evaluation samples come from `dataset.evaluation`, else from the dataset's own source, else out of the training
    rows; training rows whose prompt is among them are left out. Raises `DataError` when nothing is left to train on.
    """
    settings, seed = plan.recipe.dataset, plan.recipe.run.seed
    train = load_samples(plan.dataset, settings, split="train", seed=seed, context=context)
    evaluation = _load_evaluation(plan, context)
    if evaluation is None and settings.evaluation_rows is not None:
        held_out = _take_out(train.samples, settings.evaluation_rows, seed, plan.dataset.reference)
        evaluation = replace(train, samples=held_out, dropped={}, warnings=())
        kept, overlap = _without_prompts(train.samples, held_out)
        overlap -= len(held_out)
    else:
        kept, overlap = _without_prompts(train.samples, evaluation.samples if evaluation else ())
    if not kept:
        raise DataError(
            f"{plan.dataset.reference}: no training row is left, all {len(train.samples)} have an evaluation prompt",
            hint="Evaluate on other rows: --eval-dataset with another file or ?split=test, or fewer --eval-rows.",
        )
    dropped = Counter(train.dropped) + Counter(evaluation.dropped if evaluation else {})
    return Data(
        train=kept,
        evaluation=tuple(_with_all(sample, train.columns) for sample in evaluation.samples) if evaluation else (),
        columns=train.columns,
        dropped=dropped + Counter({_IN_EVALUATION: overlap}),
        warnings=(*train.warnings, *_evaluation_warnings(train, evaluation, overlap)),
    )


def load_samples(
    dataset: PlannedDataset,
    settings: DataSettings,
    *,
    split: Purpose,
    seed: int,
    context: BuildContext,
    limit: int | None = None,
) -> LoadedSamples:
    """Read a dataset (its first `limit` rows) and make samples of its rows.

    `settings.system` is the text itself. A sample's id is the split and the position of its row: `train-000012`.
    Raises `DataError` that names the row and the column for the first row that cannot be used, and when no row is left.
    """
    rows = read_rows(dataset, split=split, seed=seed, limit=limit)
    check_renames((name for row in rows for name in row.columns), settings.columns)
    system = (settings.system or "").strip()
    to_sample = _mapper(dataset.preprocess, context, settings.columns.values())
    samples: list[Sample] = []
    notes: Counter[str] = Counter()
    for row in rows:
        mapped = _map(row, settings.columns, to_sample)
        if mapped is not None:
            notes.update(mapped.notes)
            sample_id = f"{split}-{row.index:06d}"
            samples.append(replace(with_system(mapped.sample, system), id=sample_id))
    if not samples:
        raise DataError(f"{dataset.reference}: no row is left: {len(rows)} were read, {_PREPROCESSED}")
    columns = frozenset(name for sample in samples for name in sample.columns)
    return LoadedSamples(
        samples=tuple(_with_all(sample, columns) for sample in samples),
        columns=columns,
        dropped={_PREPROCESSED: len(rows) - len(samples)} if len(samples) < len(rows) else {},
        warnings=tuple(f"{dataset.reference}: {note} ({count} rows)" for note, count in notes.items()),
    )


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
        except Exception as error:  # whatever a plugin's code raises
            raise DataError(f"the preprocessor '{name}' failed: {describe(error)}") from error
        if sample is not None and not isinstance(sample, Sample):
            raise DataError(f"the preprocessor '{name}' gave {type(sample).__name__}; it must give a Sample or None")
        return None if sample is None else Mapped(sample=sample)

    return to_sample


def _map(row: Row, renames: Mapping[str, str], to_sample: Callable[[Row], Mapped | None]) -> Mapped | None:
    """The sample of a row, checked; errors say which row it is."""
    try:
        mapped = to_sample(replace(row, columns=rename(row.columns, renames)))
        if mapped is None:
            return None
        check_names(mapped.sample.columns)
        _check_prompt(mapped.sample)
    except DataError as error:
        raise DataError(f"{row.place}: {error.message}", hint=error.hint) from error
    images = tuple(locate(image, row.folder) for image in mapped.sample.images)
    return replace(mapped, sample=replace(mapped.sample, images=images))


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


def _with_all(sample: Sample, columns: Iterable[str]) -> Sample:
    missing = [name for name in columns if name not in sample.columns]
    return replace(sample, columns={**sample.columns, **dict.fromkeys(missing)}) if missing else sample


def _load_evaluation(plan: LaunchPlan, context: BuildContext) -> LoadedSamples | None:
    """Evaluation samples that do not come out of the training rows; None: there are none of their own."""
    settings, dataset = plan.recipe.dataset, plan.evaluation
    if dataset is None and settings.evaluation_rows is not None and plan.dataset.source is not None:
        dataset = without_sampling(plan.dataset)
    if dataset is None:
        return None
    return load_samples(
        dataset,
        settings,
        split="evaluation",
        seed=plan.recipe.run.seed,
        context=context,
        limit=settings.evaluation_rows,
    )


def _take_out(samples: Sequence[Sample], wanted: int, seed: int, reference: str) -> tuple[Sample, ...]:
    """Draw samples for evaluation, each prompt once."""
    by_prompt = {_prompt_key(sample): sample for sample in reversed(samples)}
    if wanted >= len(by_prompt):
        raise DataError(
            f"{reference}: {wanted} rows cannot be taken out for evaluation: there are {len(by_prompt)} different "
            "prompts, and one must be left to train on",
            hint=f"Take at most {len(by_prompt) - 1}, or give --eval-dataset.",
        )
    chosen = Random(f"evaluation rows {seed}").sample(list(by_prompt.values()), wanted)
    named = [replace(sample, id=sample.id.replace("train", "evaluation", 1)) for sample in chosen]
    return tuple(sorted(named, key=lambda sample: sample.id))


def _without_prompts(samples: Sequence[Sample], taken: Sequence[Sample]) -> tuple[tuple[Sample, ...], int]:
    """The samples whose prompt is not among those of `taken`, and how many are left out."""
    prompts = {_prompt_key(sample) for sample in taken}
    kept = tuple(sample for sample in samples if _prompt_key(sample) not in prompts)
    return kept, len(samples) - len(kept)


def _prompt_key(sample: Sample) -> object:
    return sample.messages, sample.images


def _evaluation_warnings(train: LoadedSamples, evaluation: LoadedSamples | None, overlap: int) -> list[str]:
    if evaluation is None:
        return []
    warnings = list(evaluation.warnings)
    if overlap:
        warnings.append(f"{overlap} training rows are left out: {_IN_EVALUATION}")
    if missing := sorted(train.columns - evaluation.columns):
        warnings.append(f"the evaluation rows have no column {', '.join(missing)}: rewards get None for it there")
    return warnings
