"""The samples of a run: of one dataset or a mix, for training and for evaluation, which never share a prompt.

datasets → samples of each → evaluation rows taken out or read → training samples without their prompts
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from grpo_core.data.sampler import shares, taken_before
from grpo_core.data.samples import LoadedSamples, load_samples, prompt_key, with_all
from grpo_core.data.sources import without_sampling
from grpo_core.data.stream import SampleStream, open_samples
from grpo_core.errors import DataError
from grpo_core.recipe.plan import LaunchPlan, PlannedDataset
from grpo_core.types import BuildContext, Sample

__all__ = ["Data", "TrainingSet", "load_data", "open_dataset"]

_IN_EVALUATION = "their prompt is an evaluation prompt too"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """The training samples of one dataset."""

    dataset: PlannedDataset
    """Its plan."""
    samples: tuple[Sample, ...]
    """All of them; of a stream those of its first block. Never empty."""
    stream: SampleStream | None = None
    """Where the samples come from when they are not all read."""

    @property
    def weight(self) -> float:
        """Its share of the prompts, relative to the others."""
        return self.dataset.weight or len(self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The samples of a run."""

    sets: tuple[TrainingSet, ...]
    """One, or those of a mix."""
    evaluation: tuple[Sample, ...]
    """No prompt of it is a training prompt. Empty: no evaluation was asked for."""
    columns: frozenset[str]
    """Of the training samples: what rewards can bind to."""
    dropped: Mapping[str, int]
    """Reason -> number of rows left out of both."""
    warnings: tuple[str, ...]
    """What is allowed and probably not meant."""

    @property
    def train(self) -> tuple[Sample, ...]:
        """The training samples of all datasets."""
        return tuple(sample for each in self.sets for sample in each.samples)


def load_data(plan: LaunchPlan, context: BuildContext) -> Data:
    """Read the training and evaluation samples of a run.

    Evaluation samples come from `dataset.evaluation`; else each dataset gives its share of them, made by its own source
    or taken out of its rows. Training rows whose prompt is among them are left out. Raises `DataError` when nothing is
    left of a dataset to train on.
    """
    seed = plan.recipe.run.seed
    opened = [open_dataset(dataset, seed, context) for dataset in plan.datasets]
    loaded = [each for each, _ in opened]
    columns = frozenset(name for each in loaded for name in each.columns)
    held_out, taken_out = _load_evaluation(plan, opened, context)
    prompts = {prompt_key(sample) for each in held_out for sample in each.samples}
    sets = [_without(prompts, *each, columns) for each in zip(plan.datasets, opened, strict=True)]
    evaluation = [with_all(sample, columns) for each in held_out for sample in each.samples]
    overlap = sum(_left_out(each, kept) for each, kept in zip(loaded, sets, strict=True)) - taken_out
    return Data(
        sets=tuple(sets),
        evaluation=tuple(evaluation),
        columns=columns,
        dropped=_dropped(plan.datasets, loaded, held_out) + Counter({_IN_EVALUATION: overlap}),
        warnings=(
            *(warning for each in loaded for warning in each.warnings),
            *(() if plan.evaluation is not None else _taken_warnings(loaded, sets)),
            *_evaluation_warnings(held_out, columns, overlap),
        ),
    )


_Opened = tuple[LoadedSamples, SampleStream | None]


def open_dataset(dataset: PlannedDataset, seed: int, context: BuildContext) -> _Opened:
    """The training samples of a dataset; or its first ones, and the stream that has the others."""
    if dataset.buffer_rows is None:
        return load_samples(dataset, split="train", seed=seed, context=context), None
    stream = open_samples(dataset, "train", context)
    return stream.first_block(), stream


def _load_evaluation(
    plan: LaunchPlan, opened: Sequence[_Opened], context: BuildContext
) -> tuple[list[LoadedSamples], int]:
    """The evaluation samples by where they come from, and how many of them were read as training samples."""
    wanted, seed = plan.recipe.dataset.evaluation_rows, plan.recipe.run.seed
    if plan.evaluation is not None:
        return [_read_evaluation(plan.evaluation, seed, wanted, context)], 0
    if wanted is None:
        return [], 0
    weights = [each.weight or len(own.samples) for each, (own, _) in zip(plan.datasets, opened, strict=True)]
    held_out, taken_out = [], 0
    counts = taken_before(wanted, shares(weights))
    for dataset, (own, stream), count in zip(plan.datasets, opened, counts, strict=True):
        if stream is not None:
            held_out.append(replace(own, samples=_renamed(stream.first(count)), dropped={}, warnings=()))
        elif dataset.source is None:
            held_out.append(_take_out(own, count, seed, dataset.reference))
            taken_out += count
        elif count:
            whole = without_sampling(dataset)
            held_out.append(load_samples(whole, split="evaluation", seed=seed, context=context, limit=count))
    return held_out, taken_out


def _read_evaluation(dataset: PlannedDataset, seed: int, limit: int | None, context: BuildContext) -> LoadedSamples:
    if dataset.buffer_rows is None:
        return load_samples(dataset, split="evaluation", seed=seed, context=context, limit=limit)
    if limit is None:
        raise DataError(
            f"{dataset.reference}: is streamed, so it has no last row to evaluate on",
            hint="Set dataset.evaluation_rows, for instance --eval-rows 200, or remove streaming=true.",
        )
    stream = open_samples(dataset, "evaluation", context)
    return replace(stream.first_block(), samples=stream.first(limit))


def _take_out(loaded: LoadedSamples, wanted: int, seed: int, reference: str) -> LoadedSamples:
    """Draw samples for evaluation, each prompt once."""
    by_prompt = {prompt_key(sample): sample for sample in reversed(loaded.samples)}
    if wanted >= len(by_prompt):
        raise DataError(
            f"{reference}: {wanted} rows cannot be taken out for evaluation: there are {len(by_prompt)} different "
            "prompts, and one must be left to train on",
            hint=f"Take at most {len(by_prompt) - 1}, or give --eval-dataset.",
        )
    chosen = Random(f"evaluation rows {seed}").sample(list(by_prompt.values()), wanted)
    in_order = tuple(sorted(_renamed(chosen), key=lambda sample: sample.id))
    return LoadedSamples(samples=in_order, columns=loaded.columns, dropped={})


def _renamed(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Training samples under the ids of evaluation samples."""
    return tuple(replace(sample, id=sample.id.replace("train", "evaluation", 1)) for sample in samples)


def _without(
    prompts: Collection[object], dataset: PlannedDataset, opened: _Opened, columns: Collection[str]
) -> TrainingSet:
    """The training samples whose prompt is not among `prompts`."""
    loaded, stream = opened
    if stream is not None:
        stream.exclude(prompts)
        stream.fill(columns)
        return TrainingSet(dataset=dataset, samples=stream.first_block().samples, stream=stream)
    kept = tuple(with_all(sample, columns) for sample in loaded.samples if prompt_key(sample) not in prompts)
    if not kept:
        raise DataError(
            f"{dataset.reference}: no training row is left, all {len(loaded.samples)} have an evaluation prompt",
            hint="Evaluate on other rows: --eval-dataset with another file or ?split=test, or fewer --eval-rows.",
        )
    return TrainingSet(dataset=dataset, samples=kept)


def _left_out(loaded: LoadedSamples, kept: TrainingSet) -> int:
    return 0 if kept.stream is not None else len(loaded.samples) - len(kept.samples)


def _dropped(
    datasets: Sequence[PlannedDataset], loaded: Sequence[LoadedSamples], held_out: Sequence[LoadedSamples]
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for dataset, each in zip(datasets, loaded, strict=True):
        counts.update({_of(dataset, reason): count for reason, count in each.dropped.items()})
    for each in held_out:
        counts.update(each.dropped)
    return counts


def _of(dataset: PlannedDataset, reason: str) -> str:
    return f"{dataset.name}: {reason}" if dataset.name else reason


def _taken_warnings(loaded: Sequence[LoadedSamples], sets: Sequence[TrainingSet]) -> Iterator[str]:
    """Of datasets that lose more than half of their rows to evaluation."""
    for whole, kept in zip(loaded, sets, strict=True):
        took, left = _left_out(whole, kept), len(kept.samples)
        if took > left:
            yield (
                f"{kept.dataset.name or kept.dataset.reference}: evaluation takes {took} of its {took + left} rows and "
                f"leaves {left} to train on; take fewer (--eval-rows), or give --eval-dataset"
            )


def _evaluation_warnings(held_out: Sequence[LoadedSamples], columns: Collection[str], overlap: int) -> Iterator[str]:
    if not held_out:
        return
    yield from (warning for each in held_out for warning in each.warnings)
    if overlap:
        yield f"{overlap} training rows are left out: {_IN_EVALUATION}"
    there = {name for each in held_out for name in each.columns}
    if missing := sorted(set(columns) - there):
        yield f"the evaluation rows have no column {', '.join(missing)}: rewards get None for it there"
