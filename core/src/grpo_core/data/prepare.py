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
from grpo_core.errors import DataError
from grpo_core.recipe.plan import LaunchPlan, PlannedDataset
from grpo_core.types import BuildContext, Sample

__all__ = ["Data", "TrainingSet", "load_data"]

_IN_EVALUATION = "their prompt is an evaluation prompt too"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """The training samples of one dataset."""

    dataset: PlannedDataset
    """Its plan."""
    samples: tuple[Sample, ...]
    """Never empty."""

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
    loaded = [load_samples(dataset, split="train", seed=seed, context=context) for dataset in plan.datasets]
    columns = frozenset(name for each in loaded for name in each.columns)
    held_out, taken_out = _load_evaluation(plan, loaded, context)
    prompts = {prompt_key(sample) for each in held_out for sample in each.samples}
    sets = [_without(prompts, *pair, columns) for pair in zip(plan.datasets, loaded, strict=True)]
    evaluation = [with_all(sample, columns) for each in held_out for sample in each.samples]
    overlap = sum(len(each.samples) for each in loaded) - sum(len(each.samples) for each in sets) - taken_out
    return Data(
        sets=tuple(sets),
        evaluation=tuple(evaluation),
        columns=columns,
        dropped=_dropped(plan.datasets, loaded, held_out) + Counter({_IN_EVALUATION: overlap}),
        warnings=(
            *(warning for each in loaded for warning in each.warnings),
            *_evaluation_warnings(held_out, columns, overlap),
        ),
    )


def _load_evaluation(
    plan: LaunchPlan, loaded: Sequence[LoadedSamples], context: BuildContext
) -> tuple[list[LoadedSamples], int]:
    """The evaluation samples by where they come from, and how many of them were training samples."""
    wanted, seed = plan.recipe.dataset.evaluation_rows, plan.recipe.run.seed
    if plan.evaluation is not None:
        return [load_samples(plan.evaluation, split="evaluation", seed=seed, context=context, limit=wanted)], 0
    if wanted is None:
        return [], 0
    weights = [each.weight or len(own.samples) for each, own in zip(plan.datasets, loaded, strict=True)]
    held_out, taken_out = [], 0
    for dataset, own, count in zip(plan.datasets, loaded, taken_before(wanted, shares(weights)), strict=True):
        if dataset.source is None:
            held_out.append(_take_out(own, count, seed, dataset.reference))
            taken_out += count
        elif count:
            whole = without_sampling(dataset)
            held_out.append(load_samples(whole, split="evaluation", seed=seed, context=context, limit=count))
    return held_out, taken_out


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
    named = [replace(sample, id=sample.id.replace("train", "evaluation", 1)) for sample in chosen]
    in_order = tuple(sorted(named, key=lambda sample: sample.id))
    return LoadedSamples(samples=in_order, columns=loaded.columns, dropped={})


def _without(
    prompts: Collection[object], dataset: PlannedDataset, loaded: LoadedSamples, columns: Collection[str]
) -> TrainingSet:
    """The training samples whose prompt is not among `prompts`."""
    kept = tuple(with_all(sample, columns) for sample in loaded.samples if prompt_key(sample) not in prompts)
    if not kept:
        raise DataError(
            f"{dataset.reference}: no training row is left, all {len(loaded.samples)} have an evaluation prompt",
            hint="Evaluate on other rows: --eval-dataset with another file or ?split=test, or fewer --eval-rows.",
        )
    return TrainingSet(dataset=dataset, samples=kept)


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


def _evaluation_warnings(held_out: Sequence[LoadedSamples], columns: Collection[str], overlap: int) -> Iterator[str]:
    if not held_out:
        return
    yield from (warning for each in held_out for warning in each.warnings)
    if overlap:
        yield f"{overlap} training rows are left out: {_IN_EVALUATION}"
    there = {name for each in held_out for name in each.columns}
    if missing := sorted(set(columns) - there):
        yield f"the evaluation rows have no column {', '.join(missing)}: rewards get None for it there"
