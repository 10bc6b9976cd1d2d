"""From a validated recipe to the launch plan: every name looked up, every option checked, every number derived.

Everything that is wrong is reported at once. Imports no target, reads no data and loads no model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from grpo_core import __version__
from grpo_core.errors import Problem, RecipeError
from grpo_core.plugins.catalog import Catalog
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.namespace import Namespace
from grpo_core.plugins.specs import RewardSpec
from grpo_core.plugins.targets import load_target
from grpo_core.recipe.checks import prompts_per_step
from grpo_core.recipe.complaints import did_you_mean
from grpo_core.recipe.components import find_component, plan_entry, plan_object
from grpo_core.recipe.datasets import plan_datasets
from grpo_core.recipe.extras import missing_extras
from grpo_core.recipe.layers import reward_name
from grpo_core.recipe.names import Names
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.paths import read_text_setting
from grpo_core.recipe.plan import (
    BatchPlan,
    LaunchPlan,
    PlannedComponent,
    PlannedObserver,
    PlannedReward,
)
from grpo_core.recipe.problems import Problems
from grpo_core.recipe.schema import Recipe, RewardEntry, RolloutSettings, RunSettings, TrainerSettings
from grpo_core.recipe.streams import check_streams
from grpo_core.recipe.trackers import plan_tracker, stray_options
from grpo_core.recipe.validate import PLACEHOLDER

__all__ = ["plan_batch", "plan_reward", "resolve"]

WeightsRoute = Literal["shared", "stream"]
ROUTES: tuple[WeightsRoute, ...] = ("shared", "stream")
"""In the order of preference: sharing costs no copy."""


def resolve(
    recipe: Recipe,
    origins: Mapping[str, str],
    *,
    host: PluginHost,
    problems: Sequence[Problem] = (),
    namespaces: Mapping[str, Namespace] | None = None,
) -> LaunchPlan:
    """Plan a run.

    Args:
        recipe: the settings.
        origins: dotted path -> who set the value.
        host: the plugins.
        problems: those found before.
        namespaces: dotted path -> where a bare name there is looked up first; not there: it means any plugin's.

    Raises:
        RecipeError: with every problem, the ones found before included.
    """
    found = Problems(origins, problems)
    names = Names(catalog=host.catalog, namespaces=namespaces or {}, written=origins)
    recipe = _with_texts(recipe, found)
    datasets, evaluation = plan_datasets(recipe.dataset, found, names)
    check_streams(recipe, datasets, found)
    rewards = tuple(filter(None, (_plan_reward(entry, found, names) for entry in recipe.rewards)))
    rollout = _plan_backend("rollout", recipe.rollout, found, names)
    trainer = _plan_backend("trainer", recipe.trainer, found, names)
    route = _weights_route(rollout, trainer, found)
    trackers = tuple(_plan_trackers(recipe.run, found, names.at("run.report_to")))
    _check_lora(recipe, trainer, found)
    _check_freeze(recipe, trainer, found)
    _check_staleness(recipe, rollout, found)
    _check_options(recipe, rollout, found)
    _check_options(recipe, trainer, found)
    _check_names(recipe, rewards, found)
    if found.problems or rollout is None or trainer is None or route is None:
        raise RecipeError(found.problems)
    return LaunchPlan(
        core_version=__version__,
        recipe=recipe,
        origins=dict(origins),
        datasets=datasets,
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


def plan_reward(entry: RewardEntry, *, catalog: Catalog) -> PlannedReward:
    """Plan one reward: `countdown_reward`, `./mine.py:near`.

    Raises:
        UsageError, UnknownComponent, AmbiguousComponent, BrokenReference: the reference leads nowhere.
        PluginError: something it needs is not installed.
        RecipeError: wrong settings, every one of them, paths beginning with `options`, `runs_in` or `scope`.
    """
    component = find_component("reward", entry.use, catalog=catalog)
    if component.entry is None:
        planned = plan_object(component.reference, entry.options)
        spec = RewardSpec(name=component.reference.short_name, summary="", target=planned.target)
    else:
        planned = plan_entry(component.entry, entry.options)
        spec = cast(RewardSpec, component.entry.spec)
    return _planned_reward(entry, spec, planned, is_registered=component.entry is not None)


def _plan_reward(entry: RewardEntry, found: Problems, names: Names) -> PlannedReward | None:
    if entry.use == PLACEHOLDER:
        return None
    address = dotted(("rewards", reward_name({"use": entry.use, "name": entry.name}) or "?"))
    with found.at(address, "use"):
        return plan_reward(entry, catalog=names.at(f"{address}.use"))
    return None


def _planned_reward(
    entry: RewardEntry, spec: RewardSpec, component: PlannedComponent, *, is_registered: bool
) -> PlannedReward:
    runs_in = entry.runs_in or spec.runs_in
    if spec.budget_s is not None and runs_in == "main":
        message = f"must be worker: only there its limit of {spec.budget_s:g} s can be kept"
        raise RecipeError([Problem(path="runs_in", message=message)])
    if spec.budget_s is not None and entry.scope not in (None, "sample"):
        message = f"must be sample: its limit of {spec.budget_s:g} s is that of one answer"
        raise RecipeError([Problem(path="scope", message=message)])
    return PlannedReward(
        name=entry.name or spec.name,
        component=component,
        weight=entry.weight,
        columns=entry.columns,
        tasks=spec.tasks if entry.tasks is None else entry.tasks,
        scope=entry.scope or (spec.scope if is_registered else None),
        pure=spec.pure,
        budget_s=spec.budget_s,
        deadline_s=spec.deadline_s if entry.deadline_s is None else entry.deadline_s,
        runs_in=runs_in,
        verifies=spec.verifies,
    )


def _plan_backend(
    kind: Literal["rollout", "trainer"],
    settings: RolloutSettings | TrainerSettings,
    found: Problems,
    names: Names,
) -> PlannedComponent | None:
    with found.at(kind, "use"):
        entry = find_component(kind, settings.use, catalog=names.at_default(f"{kind}.use")).entry
        return None if entry is None else plan_entry(entry, settings.options)
    return None


def _weights_route(
    rollout: PlannedComponent | None, trainer: PlannedComponent | None, found: Problems
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


def _plan_trackers(run: RunSettings, found: Problems, catalog: Catalog) -> Iterator[PlannedComponent]:
    for name in dict.fromkeys(run.report_to):
        with found.at("run", "report_to"):
            yield plan_tracker(name, run.tracker_options.get(name, {}), catalog=catalog)
    for path, message in stray_options(run, catalog):
        found.add(path, message)


def _check_lora(recipe: Recipe, trainer: PlannedComponent | None, found: Problems) -> None:
    if recipe.trainer.lora is not None and trainer is not None and "lora" not in trainer.capabilities:
        found.add("trainer.lora", f"'{trainer.name}' has no LoRA; choose a trainer with the capability `lora`")
    for finding in missing_extras(recipe):
        found.add(dotted(finding.path), finding.message)


def _check_freeze(recipe: Recipe, trainer: PlannedComponent | None, found: Problems) -> None:
    if recipe.trainer.freeze and trainer is not None and "freeze" not in trainer.capabilities:
        message = f"'{trainer.name}' trains every weight; choose a trainer with the capability `freeze`"
        found.add("trainer.freeze", message)


def _check_staleness(recipe: Recipe, rollout: PlannedComponent | None, found: Problems) -> None:
    if recipe.rollout.max_staleness and rollout is not None and "overlaps" not in rollout.capabilities:
        found.add(
            "rollout.max_staleness",
            f"'{rollout.name}' cannot generate while the trainer computes; leave it at 0, or choose a rollout backend "
            "with the capability `overlaps`",
        )


def _check_options(recipe: Recipe, component: PlannedComponent | None, found: Problems) -> None:
    """What options contradict in the rest of the recipe; their model says so, where it has a method for it."""
    if component is None or component.options_model is None:
        return
    model: Any = load_target(component.options_model)
    contradictions = getattr(model(**component.options), "contradictions", None)
    for path, message in contradictions(recipe) if contradictions else ():
        found.add(path, message)


def _check_names(recipe: Recipe, rewards: Sequence[PlannedReward], found: Problems) -> None:
    names = [reward.name for reward in rewards]
    for name, count in Counter(names).items():
        if count > 1:
            entries = [entry.use for entry in recipe.rewards if entry.use != PLACEHOLDER]
            uses = " and ".join(use for use, other in zip(entries, names, strict=False) if other == name)
            found.add("rewards", f"{uses} are both named '{name}'; give one another `name`")
    success = recipe.evaluation.success
    if success is not None and success not in names and len(names) == len(recipe.rewards):
        found.add("evaluation.success", f"'{success}' is no reward of this run; {did_you_mean(success, names)}")


def _with_texts(recipe: Recipe, found: Problems) -> Recipe:
    """The recipe with the text of the files that a system prompt or chat template names, so that the plan is whole."""
    data, template = recipe.dataset, recipe.model.chat_template
    with found.at("dataset", "system"):
        mix = tuple(entry.model_copy(update={"system": _text(entry.system)}) for entry in data.mix)
        data = data.model_copy(update={"system": _text(data.system), "mix": mix})
    with found.at("model", "chat_template"):
        template = _text(template)
    model = recipe.model.model_copy(update={"chat_template": template})
    return recipe.model_copy(update={"dataset": data, "model": model})


def _text(setting: str | None) -> str | None:
    return setting and read_text_setting(setting)


def _observers(host: PluginHost) -> tuple[PlannedObserver, ...]:
    return tuple(
        PlannedObserver(distribution=plugin.distribution, version=plugin.version, module=module)
        for plugin in host.admitted
        for module in plugin.observers
    )
