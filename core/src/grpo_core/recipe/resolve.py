"""From a validated recipe to the launch plan: every name looked up, every option checked, every number derived.

Everything that is wrong is reported at once. Imports no target, reads no data and loads no model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, cast

from grpo_core import __version__
from grpo_core.errors import GrpoError, Problem, RecipeError
from grpo_core.plugins.catalog import Catalog
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.specs import RewardSpec
from grpo_core.recipe.checks import prompts_per_step
from grpo_core.recipe.complaints import did_you_mean
from grpo_core.recipe.components import find_component, plan_entry, plan_object
from grpo_core.recipe.datasets import Rows, find_rows, plan_dataset, plan_preprocess
from grpo_core.recipe.extras import missing_extras
from grpo_core.recipe.layers import reward_name
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.paths import read_text_setting
from grpo_core.recipe.plan import (
    BatchPlan,
    LaunchPlan,
    PlannedComponent,
    PlannedDataset,
    PlannedObserver,
    PlannedReward,
)
from grpo_core.recipe.schema import DataSettings, Recipe, RewardEntry, RolloutSettings, RunSettings, TrainerSettings
from grpo_core.recipe.trackers import plan_tracker, stray_options
from grpo_core.recipe.validate import PLACEHOLDER

__all__ = ["plan_batch", "plan_dataset", "resolve"]

WeightsRoute = Literal["shared", "stream"]
ROUTES: tuple[WeightsRoute, ...] = ("shared", "stream")
"""In the order of preference: sharing costs no copy."""


def resolve(
    recipe: Recipe, origins: Mapping[str, str], *, host: PluginHost, problems: Sequence[Problem] = ()
) -> LaunchPlan:
    """Plan a run; `origins` maps dotted paths to who set them, `problems` are those found before.

    Raises RecipeError with every problem, the ones found before included.
    """
    found = _Problems(origins, problems)
    dataset, evaluation = _plan_datasets(recipe.dataset, found, host.catalog)
    rewards = tuple(filter(None, (_plan_reward(entry, found, host.catalog) for entry in recipe.rewards)))
    rollout = _plan_backend("rollout", recipe.rollout, found, host.catalog)
    trainer = _plan_backend("trainer", recipe.trainer, found, host.catalog)
    route = _weights_route(rollout, trainer, found)
    trackers = tuple(_plan_trackers(recipe.run, found, host.catalog))
    _check_lora(recipe, trainer, found)
    _check_names(recipe, rewards, found)
    recipe = _with_texts(recipe, found)
    if found.problems or dataset is None or rollout is None or trainer is None or route is None:
        raise RecipeError(found.problems)
    return LaunchPlan(
        core_version=__version__,
        recipe=recipe,
        origins=dict(origins),
        dataset=dataset,
        evaluation=evaluation,
        rewards=rewards,
        rollout=rollout,
        trainer=trainer,
        weights_route=route,
        batch=plan_batch(recipe),
        observers=_observers(host),
        trackers=trackers,
    )


def plan_batch(recipe: Recipe) -> BatchPlan:
    """The sizes of a step."""
    prompts, group = prompts_per_step(recipe), recipe.rollout.completions_per_prompt
    return BatchPlan(
        prompts_per_step=prompts,
        completions_per_prompt=group,
        completions_per_step=prompts * group,
        updates_per_step=recipe.trainer.num_iterations * recipe.trainer.minibatches,
    )


class _Problems:
    """Collects what goes wrong, with path and origin, instead of stopping at the first."""

    def __init__(self, origins: Mapping[str, str], problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        self._origins = origins

    def add(self, path: str, message: str) -> None:
        self.problems.append(Problem(path=path, message=message, origin=self._origin_of(path)))

    @contextmanager
    def at(self, section: str, key: str) -> Iterator[None]:
        """Note an error of the block at `section.key`; problems that have a path of their own, below `section`."""
        try:
            yield
        except RecipeError as error:
            for problem in error.problems:
                self.add(f"{section}.{problem.path}", problem.message)
        except GrpoError as error:
            self.add(f"{section}.{key}", f"{error.message}. {error.hint}" if error.hint else error.message)

    def _origin_of(self, path: str) -> str | None:
        while path and path not in self._origins:
            path = path.rpartition(".")[0]
        return self._origins.get(path)


def _plan_datasets(
    data: DataSettings, found: _Problems, catalog: Catalog
) -> tuple[PlannedDataset | None, PlannedDataset | None]:
    train = evaluation = None
    with found.at("dataset", "use"):
        train = None if data.use == PLACEHOLDER else find_rows(data.use, catalog=catalog)
    with found.at("dataset", "evaluation"):
        evaluation = None if data.evaluation is None else find_rows(data.evaluation, catalog=catalog)
    if train is None:
        return None, None
    component = None
    with found.at("dataset", "preprocess" if data.preprocess else "use"):
        component = plan_preprocess(train, data.preprocess, data.options, catalog=catalog)
    own = component  # rows that nobody in particular knows are taken to be like those of training
    if evaluation is not None and _is_another(evaluation, train, data.preprocess):
        with found.at("dataset", "evaluation"):
            own = plan_preprocess(evaluation, None, {}, catalog=catalog)
    return train.planned(component), evaluation.planned(own) if evaluation else None


def _is_another(evaluation: Rows, train: Rows, preprocess: str | None) -> bool:
    """Whether the evaluation dataset makes its samples in a way of its own."""
    is_other = evaluation.entry is not None and evaluation.entry != train.entry
    return is_other and (preprocess is None or evaluation.is_named)


def _plan_reward(entry: RewardEntry, found: _Problems, catalog: Catalog) -> PlannedReward | None:
    if entry.use == PLACEHOLDER:
        return None
    address = dotted(("rewards", reward_name({"use": entry.use, "name": entry.name}) or "?"))
    with found.at(address, "use"):
        component = find_component("reward", entry.use, catalog=catalog)
        if component.entry is None:
            planned = plan_object(component.reference, entry.options)
            spec = RewardSpec(name=component.reference.short_name, summary="", target=planned.target)
        else:
            planned = plan_entry(component.entry, entry.options)
            spec = cast(RewardSpec, component.entry.spec)
        return _planned_reward(entry, spec, planned, address, found)
    return None


def _planned_reward(
    entry: RewardEntry, spec: RewardSpec, component: PlannedComponent, address: str, found: _Problems
) -> PlannedReward:
    runs_in = entry.runs_in or spec.runs_in
    if spec.budget_s is not None and runs_in == "main":
        found.add(f"{address}.runs_in", f"must be worker: only there its limit of {spec.budget_s:g} s can be kept")
    return PlannedReward(
        name=entry.name or spec.name,
        component=component,
        weight=entry.weight,
        columns=entry.columns,
        tasks=spec.tasks if entry.tasks is None else entry.tasks,
        scope=spec.scope,
        pure=spec.pure,
        budget_s=spec.budget_s,
        deadline_s=entry.deadline_s,
        runs_in=runs_in,
        verifies=spec.verifies,
    )


def _plan_backend(
    kind: Literal["rollout", "trainer"],
    settings: RolloutSettings | TrainerSettings,
    found: _Problems,
    catalog: Catalog,
) -> PlannedComponent | None:
    with found.at(kind, "use"):
        entry = find_component(kind, settings.use, catalog=catalog).entry
        return None if entry is None else plan_entry(entry, settings.options)
    return None


def _weights_route(
    rollout: PlannedComponent | None, trainer: PlannedComponent | None, found: _Problems
) -> WeightsRoute | None:
    """How weights get from trainer to rollout: the best way both have."""
    if rollout is None or trainer is None:
        return None
    common = set(rollout.capabilities) & set(trainer.capabilities)
    route = next((route for route in ROUTES if f"weights:{route}" in common), None)
    if route is None:
        ways = [", ".join(w for w in part.capabilities if w.startswith("weights:")) for part in (trainer, rollout)]
        message = f"'{trainer.name}' gives its weights by {ways[0] or 'no way'} and '{rollout.name}' takes them by "
        found.add("rollout.use", f"{message}{ways[1] or 'no way'}; choose two backends with a way in common")
    return route


def _plan_trackers(run: RunSettings, found: _Problems, catalog: Catalog) -> Iterator[PlannedComponent]:
    for name in dict.fromkeys(run.report_to):
        with found.at("run", "report_to"):
            yield plan_tracker(name, run.tracker_options.get(name, {}), catalog=catalog)
    for path, message in stray_options(run, catalog):
        found.add(path, message)


def _check_lora(recipe: Recipe, trainer: PlannedComponent | None, found: _Problems) -> None:
    if recipe.trainer.lora is not None and trainer is not None and "lora" not in trainer.capabilities:
        found.add("trainer.lora", f"'{trainer.name}' has no LoRA; choose a trainer with the capability `lora`")
    for finding in missing_extras(recipe):
        found.add(dotted(finding.path), finding.message)


def _check_names(recipe: Recipe, rewards: Sequence[PlannedReward], found: _Problems) -> None:
    names = [reward.name for reward in rewards]
    for name, count in Counter(names).items():
        if count > 1:
            entries = [entry.use for entry in recipe.rewards if entry.use != PLACEHOLDER]
            uses = " and ".join(use for use, other in zip(entries, names, strict=False) if other == name)
            found.add("rewards", f"{uses} are both named '{name}'; give one another `name`")
    success = recipe.evaluation.success
    if success is not None and success not in names and len(names) == len(recipe.rewards):
        found.add("evaluation.success", f"'{success}' is no reward of this run; {did_you_mean(success, names)}")


def _with_texts(recipe: Recipe, found: _Problems) -> Recipe:
    """The recipe with the text of the files that a system prompt or chat template names, so that the plan is whole."""
    system, template = recipe.dataset.system, recipe.model.chat_template
    with found.at("dataset", "system"):
        system = system and read_text_setting(system)
    with found.at("model", "chat_template"):
        template = template and read_text_setting(template)
    return recipe.model_copy(
        update={
            "dataset": recipe.dataset.model_copy(update={"system": system}),
            "model": recipe.model.model_copy(update={"chat_template": template}),
        }
    )


def _observers(host: PluginHost) -> tuple[PlannedObserver, ...]:
    return tuple(
        PlannedObserver(distribution=plugin.distribution, version=plugin.version, module=module)
        for plugin in host.admitted
        for module in plugin.observers
    )
