"""What can be wrong with settings that are each right: two that exclude each other, numbers that do not go together.

Each check says the values and names ones that would work. What needs a plugin, a file or data is checked later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from grpo_core.recipe.complaints import did_you_mean
from grpo_core.recipe.layers import reward_name
from grpo_core.recipe.mix import mix_names
from grpo_core.recipe.schema import Recipe
from grpo_core.recipe.syntax import KeyPath

__all__ = ["DEFAULT_PROMPTS_PER_STEP", "Finding", "check", "prompts_per_step"]

DEFAULT_PROMPTS_PER_STEP = 8
MOST_COMPLETIONS = 10**6
"""Of a step."""
_SHOWN_CHOICES = 6
_METRIC_NAME = re.compile(r"[A-Za-z][\w-]*")
_EVALUATIONS = (
    *("eval/accuracy", "eval/reward_mean", "eval/reward_se", "eval/sampled_reward_mean", "eval/pass@{k}"),
    *(
        "eval/rewards/{name}/mean",
        "eval/tasks/{task}/accuracy",
        "eval/tasks/{task}/reward_mean",
        "eval/tasks/{task}/reward_se",
    ),
    *("eval/tasks/{task}/prompts", "eval/judged_share", "eval/length_mean", "eval/truncated_share", "eval/prompts"),
)
"""Everything that evaluations measure; what of it a run's evaluation has is known when it was made."""
_EVALUATED = re.compile(
    "|".join(each.replace("{k}", r"\d+").replace("{name}", ".+").replace("{task}", ".+") for each in _EVALUATIONS)
)
_DATASET_NAME = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """A contradiction between settings."""

    path: KeyPath
    """The setting to name."""
    message: str
    """What is wrong, with the values, and what would work."""
    involved: tuple[KeyPath, ...] = ()
    """The other settings it comes from."""


def check(recipe: Recipe) -> Iterator[Finding]:
    """Everything that contradicts something else."""
    yield from _exclusive(recipe)
    yield from _batch(recipe)
    yield from _dataset(recipe)
    yield from _rewards(recipe)
    yield from _evaluation(recipe)
    yield from _best(recipe)
    yield from _lora(recipe)


def prompts_per_step(recipe: Recipe) -> int:
    """Prompts of a step, from whichever of the two settings is given."""
    run = recipe.run
    if run.completions_per_step is not None:
        return run.completions_per_step // recipe.rollout.completions_per_prompt
    return run.prompts_per_step or DEFAULT_PROMPTS_PER_STEP


def _exclusive(recipe: Recipe) -> Iterator[Finding]:
    run, trainer = recipe.run, recipe.trainer
    pairs = (
        ("run", "epochs", run.epochs, "steps", run.steps),
        ("run", "completions_per_step", run.completions_per_step, "prompts_per_step", run.prompts_per_step),
        ("trainer", "warmup_share", trainer.warmup_share or None, "warmup_updates", trainer.warmup_updates),
    )
    for section, one, value, other, other_value in pairs:
        if value is not None and other_value is not None:
            message = f"{one} is {value:g} and {other} is {other_value}, but only one of them can hold; remove one"
            yield Finding((section, one), message, ((section, other),))


def _batch(recipe: Recipe) -> Iterator[Finding]:
    completions, group = recipe.run.completions_per_step, recipe.rollout.completions_per_prompt
    if completions is not None and recipe.run.prompts_per_step is not None:
        return  # which of the two is meant is not known
    involved: tuple[KeyPath, ...] = (("rollout", "completions_per_prompt"),)
    path: KeyPath = ("run", "completions_per_step" if completions is not None else "prompts_per_step")
    if completions is not None and completions % group:
        yield Finding(path, _not_a_multiple(completions, group), involved)
        return
    prompts, parts = prompts_per_step(recipe), recipe.trainer.minibatches
    if prompts * group > MOST_COMPLETIONS:
        message = (
            f"a step would be {prompts:,} prompts × {group:,} completions per prompt = {prompts * group:,} "
            f"completions, all of them in memory at once; at most {MOST_COMPLETIONS:,} can be"
        )
        yield Finding(path, message, involved)
        return
    if prompts % parts:
        message = (
            f"{prompts} prompts per step cannot be divided evenly into {parts} minibatches; "
            f"valid minibatches: {_listed(_divisors(prompts))}; "
            f"or prompts_per_step: {_listed(_multiples(prompts, parts))}"
        )
        yield Finding(("trainer", "minibatches"), message, (path, *involved))


def _not_a_multiple(completions: int, group: int) -> str:
    groups = [divisor for divisor in _divisors(completions) if divisor > 1]
    message = (
        f"{completions} completions per step are no multiple of {group} completions per prompt; "
        f"valid near it: {_listed(_multiples(completions, group))}"
    )
    return f"{message}; or completions_per_prompt: {_listed(groups)}" if groups else message


def _dataset(recipe: Recipe) -> Iterator[Finding]:
    data = recipe.dataset
    if not data.mix:
        if data.use is None:
            yield Finding(("dataset", "use"), "required, but not set", (("dataset", "mix"),))
        return
    if data.use is not None:
        message = "there is a `mix` of datasets too, and only one of them can hold; make it one of the mix"
        yield Finding(("dataset", "use"), message, (("dataset", "mix"),))
    if data.options:
        message = "in a mix, options belong to the dataset they are of; write them under it"
        yield Finding(("dataset", "options"), message)
    weighed = [entry.weight is not None for entry in data.mix]
    if any(weighed) and not all(weighed):
        message = "a dataset without a weight among some with one; give every one a weight, or none"
        yield Finding(("dataset", "mix", weighed.index(False)), message)
    yield from _mix_names(recipe)


def _mix_names(recipe: Recipe) -> Iterator[Finding]:
    entries = [entry.model_dump() for entry in recipe.dataset.mix]
    for place, name in enumerate(names := mix_names(entries)):
        if entries[place]["name"] is not None and not _DATASET_NAME.fullmatch(str(name)):
            message = f"'{name}' is no name for metrics; it needs letters, digits, '_' and '-'"
            yield Finding(("dataset", "mix", place, "name"), message)
        elif name is not None and name in names[:place]:
            message = f"there is another dataset named '{name}'; give each a `name` of its own"
            yield Finding(("dataset", "mix", place, "name"), message)


def _rewards(recipe: Recipe) -> Iterator[Finding]:
    for place, entry in enumerate(recipe.rewards):
        if entry.name is not None and not _METRIC_NAME.fullmatch(entry.name):
            message = (
                f"'{entry.name}' is no name for metrics; it needs letters, digits, '_' and '-', and a letter first"
            )
            yield Finding(("rewards", place, "name"), message)
    names = [reward_name(entry.model_dump()) for entry in recipe.rewards]
    for name, count in Counter(names).items():
        if count > 1:
            places = [place for place, other in enumerate(names) if other == name]
            message = f"{count} rewards are named '{name}'; give each a `name` of its own"
            yield Finding(("rewards", places[-1], "use"), message, tuple(("rewards", place) for place in places))
    if all(entry.weight == 0 for entry in recipe.rewards):
        yield Finding(("rewards",), "every weight is 0, so nothing would be learnt; give one another weight")


def _evaluation(recipe: Recipe) -> Iterator[Finding]:
    evaluation, data = recipe.evaluation, recipe.dataset
    over = [k for k in evaluation.pass_at if k > evaluation.samples]
    if over:
        message = f"pass@{over[0]} needs at least {over[0]} samples, but evaluation.samples is {evaluation.samples}"
        yield Finding(("evaluation", "pass_at"), message, (("evaluation", "samples"),))
    if evaluation.every_steps is not None and data.evaluation is None and data.evaluation_rows is None:
        message = "there is nothing to evaluate on; set dataset.evaluation or dataset.evaluation_rows"
        yield Finding(("evaluation", "every_steps"), message, (("dataset",),))


def _best(recipe: Recipe) -> Iterator[Finding]:
    name, data = recipe.run.save_best, recipe.dataset
    if name is None:
        return
    path: KeyPath = ("run", "save_best")
    if not name.startswith("eval/"):
        yield Finding(path, f"'{name}' is no metric of an evaluation; choose one, such as eval/accuracy")
    elif not _EVALUATED.fullmatch(name):
        yield Finding(path, f"no evaluation has '{name}'; {did_you_mean(name, _EVALUATIONS)}")
    elif data.evaluation is None and data.evaluation_rows is None:
        message = f"there is nothing to measure '{name}' on; set dataset.evaluation or dataset.evaluation_rows"
        yield Finding(path, message, (("dataset",),))


def _lora(recipe: Recipe) -> Iterator[Finding]:
    lora = recipe.trainer.lora
    if lora is None or lora.adapter is None:
        return
    for key in ("rank", "alpha", "targets", "vision", "modules_to_save"):
        if getattr(lora, key) not in (None, False):
            message = f"the adapter to go on with has its own {key}; remove one of the two settings"
            yield Finding(("trainer", "lora", key), message, (("trainer", "lora", "adapter"),))


def _multiples(near: int, of: int) -> list[int]:
    """The multiples on both sides of a number."""
    return [multiple for multiple in (near // of * of, (near // of + 1) * of) if multiple]


def _divisors(number: int) -> list[int]:
    """Every divisor, ascending."""
    small = [divisor for divisor in range(1, int(number**0.5) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})


def _listed(numbers: list[int]) -> str:
    shown = numbers if len(numbers) <= _SHOWN_CHOICES else numbers[:_SHOWN_CHOICES]
    return ", ".join(map(str, shown)) + (", …" if len(numbers) > _SHOWN_CHOICES else "")
