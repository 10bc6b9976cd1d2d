"""The code that a plan names: what runs because a recipe, or the plan of a run, says so.

    plan → **listed** → imported

A recipe is a program, and so is a run's folder, whose plan says what a resume imports. Who starts one is told first
which files that are, what for, and who said so. Installed plugins are not listed: who installed them trusts them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TextIO

from grpo_core.errors import BrokenReference, PluginError, RecipeError
from grpo_core.plugins.hookspecs import ENTRY_POINT_GROUP
from grpo_core.plugins.outline import source_file
from grpo_core.plugins.targets import load_target
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.plan import LaunchPlan, PlannedComponent, PlannedDataset, PlannedReward
from grpo_core.recipe.problems import Problems, origin_of
from grpo_core.recipe.schema import ModelSettings

__all__ = ["NamedCode", "bring_in_code", "code_of_model", "code_of_plan", "code_of_rewards", "list_code"]

_SHOWN_FILES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCode:
    """Code that runs because settings name it."""

    place: str
    """`./mine.py`, absolute where it is elsewhere; `pkg.mod (/site-packages/pkg/mod.py)`; or what a model brings."""
    use: str
    """What it is used for: `reward near`."""
    path: str
    """The setting that names it: `rewards.near.use`; empty: none does."""
    target: str | None = None
    """What is imported before anything else; None: it is imported when it is used."""


def code_of_plan(plan: LaunchPlan) -> list[NamedCode]:
    """All code that a run of this plan imports and no installed plugin ships."""
    evaluation = [] if plan.evaluation is None else _of_dataset(plan.evaluation, "dataset.evaluation")
    shares = plan.evaluation is not None and plan.evaluation.preprocess in [each.preprocess for each in plan.datasets]
    return [
        *code_of_rewards(plan.rewards),
        *(code for dataset in plan.datasets for code in _of_dataset(dataset, "dataset")),
        *(code for code in evaluation if not shares),
        *_of_component(plan.rollout, "the rollout backend", "rollout.use"),
        *_of_component(plan.trainer, "the trainer backend", "trainer.use"),
        *(code for each in plan.trackers for code in _of_component(each, f"tracker {each.name}", "run.report_to")),
        *(code for each in plan.observers for code in _of_targets([f"{each.module}:_"], "an observer", "")),
        *code_of_model(plan.recipe.model),
    ]


def code_of_rewards(rewards: Iterable[PlannedReward]) -> list[NamedCode]:
    """The same of rewards alone."""
    return [
        code
        for each in rewards
        for code in _of_object(each.component, f"reward {each.name}", f"{dotted(('rewards', each.name))}.use")
    ]


def code_of_model(model: ModelSettings) -> list[NamedCode]:
    """What a model and its tokenizer may run of their own; nothing where they must not."""
    if not model.trust_remote_code:
        return []
    sources = dict.fromkeys(filter(None, (model.path, model.tokenizer)))
    return [
        NamedCode(place=_brought_by(source), use="the model and its tokenizer", path="model.trust_remote_code")
        for source in sources
    ]


def list_code(
    code: Iterable[NamedCode], origins: Mapping[str, str], *, otherwise: str | None = None, to: TextIO | None = None
) -> None:
    """Print a line for each place of code, before any of it runs: what it is used for, and who set it; `otherwise`:
    who did where `origins` do not say. `to` None: stdout."""
    uses: dict[str, dict[str, None]] = {}
    setters: dict[str, dict[str, None]] = {}
    for each in code:
        uses.setdefault(each.place, {})[each.use] = None
        origin = origin_of(each.path, origins) or otherwise
        setters.setdefault(each.place, {}).update({origin: None} if origin else {})
    for place, used in uses.items():
        by = f" ({', '.join(setters[place])})" if setters[place] else ""
        print(f"code: {place}: {', '.join(used)}{by}", file=to or sys.stdout, flush=True)


def bring_in_code(
    plan: LaunchPlan, origins: Mapping[str, str], *, otherwise: str | None = None, to: TextIO | None = None
) -> None:
    """List the code that a plan names, then import what the recipe named, with everything that is wrong told at once.

    Raises `RecipeError` for what cannot be imported; the other arguments are those of `list_code`.
    """
    code = code_of_plan(plan)
    list_code(code, origins, otherwise=otherwise, to=to)
    found = Problems(origins)
    for each in code:
        section, _, key = each.path.rpartition(".")
        if each.target is not None:
            with found.at(section, key):
                load_target(each.target)
    if found.problems:
        raise RecipeError(found.problems)


def _of_dataset(dataset: PlannedDataset, section: str) -> list[NamedCode]:
    address = dotted(("dataset", "mix", dataset.name)) if dataset.name and section == "dataset" else section
    use = f"dataset {dataset.name}" if dataset.name else "the dataset"
    preprocessor = f"the preprocessor of {use}"
    return [
        *(_of_object(dataset.preprocess, preprocessor, f"{address}.preprocess") if dataset.preprocess else ()),
        *_of_targets([dataset.source], f"the rows of {use}", f"{address}.use"),
    ]


def _of_object(component: PlannedComponent, use: str, path: str) -> Iterator[NamedCode]:
    """What the recipe may name by its file; only that is imported early, as a registered one may need an engine."""
    is_named = component.distribution is None and component.options_model is None
    for code in _of_component(component, use, path):
        yield replace(code, target=component.target if is_named else None)


def _of_component(component: PlannedComponent, use: str, path: str) -> Iterator[NamedCode]:
    yield from _of_targets([component.target, component.options_model], use, path)
    for place in _named_by_options(component):
        yield NamedCode(place=place, use=use, path=f"{path.rpartition('.')[0]}.options")


def _named_by_options(component: PlannedComponent) -> list[str]:
    """What the options themselves name to be run, as their model says where it has a method for it."""
    if component.options_model is None or not _is_of_a_plugin(component.options_model):
        return []
    try:
        model: Any = load_target(component.options_model)
        tell = getattr(model(**component.options), "named_code", None)
        return [str(place) for place in tell()] if tell else []
    except (PluginError, TypeError, ValueError):
        return []  # options of a plan that are wrong are refused by who builds the component


def _of_targets(targets: Iterable[str | None], use: str, path: str) -> Iterator[NamedCode]:
    for target in filter(None, targets):
        if not _is_of_a_plugin(target):
            yield NamedCode(place=_shown(target.rpartition(":")[0]), use=use, path=path)


def _is_of_a_plugin(target: str) -> bool:
    """Whether an installed plugin ships it. What a plan says of distributions is not asked: it may be anybody's."""
    place = target.rpartition(":")[0]
    return not place.endswith(".py") and place.partition(".")[0] in _plugin_packages()


def _plugin_packages() -> frozenset[str]:
    return frozenset(point.value.partition(":")[0].partition(".")[0] for point in entry_points(group=ENTRY_POINT_GROUP))


def _shown(place: str) -> str:
    if place.endswith(".py"):
        return _from_here(place)
    try:
        file = source_file(place)
    except BrokenReference:
        file = None  # said when it is imported
    return f"{place} ({file})" if file else place


def _from_here(path: str) -> str:
    """Relative to the working folder where it is in it, so that what is elsewhere stands out."""
    here = os.getcwd()
    return f"./{os.path.relpath(path, here)}" if path.startswith(here.rstrip(os.sep) + os.sep) else path


def _brought_by(source: str) -> str:
    """What a folder or a repository may run: its own Python files, and those of the repositories that it names."""
    folder = Path(source)
    if not folder.is_dir():
        return f"whatever Python files '{source}' has on the hub"
    files = sorted(file.name for file in folder.glob("*.py"))
    shown = ", ".join([*files[:_SHOWN_FILES], *(["…"] if len(files) > _SHOWN_FILES else [])]) or "none"
    elsewhere = sorted(
        {*_other_repositories(folder / "config.json"), *_other_repositories(folder / "tokenizer_config.json")}
    )
    also = f", and those of {', '.join(elsewhere)} on the hub" if elsewhere else ""
    return f"the Python files of {_from_here(source)} ({shown}){also}"


def _other_repositories(file: Path) -> Iterator[str]:
    """The repositories that `auto_map` of a config names: `owner/name--module.Class`."""
    try:
        mapped = json.loads(file.read_text(encoding="utf-8"))["auto_map"]
        for names in mapped.values():
            for name in names if isinstance(names, list) else [names]:
                if isinstance(name, str) and "--" in name:
                    yield name.partition("--")[0]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # none, or no config: said by who loads it
