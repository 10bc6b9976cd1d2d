"""From a recipe, flags and `--set` to a launch plan: what `train` and `recipe check | explain` share.

environment < recipe and what it extends < flags < --set  →  examine  →  plugins  →  resolve
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_core.cli.common import load_plugins
from grpo_core.cli.flags import FLAGS, Flag
from grpo_core.errors import Problem, RecipeError

if TYPE_CHECKING:
    from grpo_core.plugins.host import PluginHost
    from grpo_core.plugins.namespace import Namespace
    from grpo_core.recipe.files import RecipeFile
    from grpo_core.recipe.layers import Layer
    from grpo_core.recipe.plan import LaunchPlan

__all__ = ["find_recipe", "gather", "make_plan", "settings_of"]

_NEEDED = ((("model", "path"),), (("dataset", "use"), ("dataset", "mix")), (("rewards",),))
"""What every run needs; of alternatives one."""
_MAX_PIXELS = "MAX_PIXELS"
_EXAMPLE = (
    "For example: grpoctl train --model Qwen/Qwen2.5-0.5B-Instruct --dataset rows.jsonl --rewards format_reward\n"
    "Or take a recipe: grpoctl train --recipe NAME; `grpoctl recipe list` shows their names."
)


def gather(recipe: str | None, flags: Mapping[str, Any], *, below: Layer | None = None) -> Layer:
    """Merge all settings; `flags` are the values of the options that `takes_flags` gave the command, `below` is what
    even a recipe wins over.

    Problems with single flags are noted in the layer. Raises RecipeError or `UnknownComponent` for the recipe itself.
    """
    from grpo_core.recipe.files import locate_recipe, read_recipe
    from grpo_core.recipe.layers import Layer, join, merge

    layer = merge(_environment(), below or Layer())
    if recipe is not None:

        def find(name: str, namespace: Namespace | None) -> RecipeFile:
            return find_recipe(name, flags.get("plugin"), namespace=namespace)

        layer = merge(layer, read_recipe(locate_recipe(recipe, find=find, base=Path()), find=find))
    given = [(flag, flags[flag.parameter]) for flag in FLAGS if flags.get(flag.parameter) is not None]
    parts = [_layer_of_flag(flag, value) for flag, value in given if "*" not in flag.path]
    layer = merge(layer, join(parts))
    for flag, value in given:
        layer = _with_weights(layer, flag, value) if "*" in flag.path else layer
    return _with_overrides(layer, flags.get("set_") or ())


def make_plan(
    layer: Layer, *, plugin_files: Sequence[Path] | None = None, problems: Sequence[Problem] = ()
) -> tuple[LaunchPlan, PluginHost]:
    """Validate the settings and look up everything they name; raises RecipeError with all problems at once.

    `problems` are those the caller found already. Raises `PluginError` when a required plugin is not there.
    """
    from grpo_core.objective import presets
    from grpo_core.recipe.layers import get_value
    from grpo_core.recipe.resolve import resolve
    from grpo_core.recipe.validate import examine

    examined = examine(layer)
    found = [*examined.problems, *problems]
    is_short = not all(any(get_value(layer.values, path) for path in alternatives) for alternatives in _NEEDED)
    hint = _EXAMPLE if is_short else None
    if examined.recipe is None:
        raise RecipeError(found, hint=hint)
    recipe = examined.recipe
    host = load_plugins(plugin_files, disable=recipe.plugins.disable, require=recipe.plugins.require)
    found += [Problem(path="objective", message=text) for text in presets.problems(recipe.objective)]
    try:
        origins, namespaces = layer.dotted_origins(), layer.dotted_namespaces()
        return resolve(recipe, origins, host=host, problems=found, namespaces=namespaces), host
    except RecipeError as error:
        raise RecipeError(error.problems, hint=hint) from None


def settings_of(plan: LaunchPlan, changes: Mapping[str, Any] | None = None) -> Layer:
    """The settings of a run that there is (with `changes` of whole sections), for flags and `--set` to win over. Names
    in them keep meaning what they meant to it, whatever was installed since."""
    from grpo_core.recipe.layers import NamespacedOrigin, make_layer
    from grpo_core.recipe.meanings import meanings
    from grpo_core.recipe.plan import OF_A_RUN

    recipe = plan.recipe.model_copy(update=changes)
    origins = {path: NamespacedOrigin(OF_A_RUN, namespace) for path, namespace in meanings(plan).items()}
    values = recipe.model_dump(mode="json", exclude_defaults=True)
    if type(recipe).model_validate(values) != recipe:  # a default that depends on another setting
        values = recipe.model_dump(mode="json")
    return make_layer(values, origins, base=Path())


def find_recipe(
    name: str, plugin_files: Sequence[Path] | None = None, *, namespace: Namespace | None = None
) -> RecipeFile:
    """A registered recipe. Its plugin need not be sound otherwise, so nothing is printed here."""
    from grpo_core.recipe.files import registered_recipe

    return registered_recipe(name, catalog=load_plugins(plugin_files, warn=False).catalog.within(namespace))


def _environment() -> Layer:
    """The setting that people who come from other trainers have in a variable."""
    from grpo_core.recipe.layers import Layer, layer_of
    from grpo_core.recipe.syntax import parse_scalar

    value = os.environ.get(_MAX_PIXELS, "").strip()
    if not value:
        return Layer()
    return layer_of(("model", "max_pixels"), parse_scalar(value), f"the variable {_MAX_PIXELS}", base=Path())


def _layer_of_flag(flag: Flag, value: Any) -> Layer:
    from grpo_core.recipe.layers import layer_of
    from grpo_core.recipe.syntax import parse_scalar

    if flag.form == "number":
        return layer_of(flag.path, parse_scalar(value.strip()), flag.name, base=Path())
    if flag.form == "text":
        return layer_of(flag.path, value, flag.name, base=Path())
    problems: list[Problem] = []
    path, parsed = flag.path, _parsed(flag, value, problems)
    if flag.form == "datasets":
        path, parsed = (path, parsed[0]) if len(parsed) == 1 else (("dataset", "mix"), parsed)
    layer = layer_of(path, parsed, flag.name, base=Path())
    return replace(layer, problems=(*layer.problems, *problems))


def _parsed(flag: Flag, value: Any, problems: list[Problem]) -> Any:
    return dict(_renames(value, problems)) if flag.form == "renames" else list(_names(value, flag, problems))


def _names(text: str, flag: Flag, problems: list[Problem]) -> Iterator[str]:
    from grpo_core.recipe.commas import split_references

    names = split_references(text)
    if "" in names:
        message = f"there is an empty name between the commas of '{text}'"
        problems.append(Problem(path=".".join(flag.path), message=message, origin=flag.name))
    return filter(None, names)


def _renames(pairs: Sequence[str], problems: list[Problem]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for pair in pairs:
        old, _, new = (part.strip() for part in pair.partition("="))
        message = None
        if not (old and new):
            message = f"'{pair}' is not old=new, as in --columns question=prompt"
        elif old in seen:
            message = f"'{old}' is renamed twice"
        if message is not None:
            problems.append(Problem(path="dataset.columns", message=message, origin="--columns"))
            continue
        seen.add(old)
        yield old, new


def _with_weights(layer: Layer, flag: Flag, text: str) -> Layer:
    """The weights of the rewards, or of the datasets of a mix."""
    from grpo_core.recipe.entries import weigh
    from grpo_core.recipe.syntax import parse_scalar

    root = flag.path[: flag.path.index("*")]
    return weigh(layer, root, [parse_scalar(part.strip()) for part in text.split(",")], origin=flag.name)


def _with_overrides(layer: Layer, texts: Sequence[str]) -> Layer:
    from grpo_core.recipe.entries import apply_overrides
    from grpo_core.recipe.overrides import parse_override
    from grpo_core.recipe.syntax import RecipeSyntaxError

    overrides, problems = [], []
    for text in texts:
        try:
            overrides.append(parse_override(text))
        except RecipeSyntaxError as error:
            problems.append(Problem(path="", message=error.message, origin="--set"))
    layer = apply_overrides(layer, overrides)
    return replace(layer, problems=(*layer.problems, *problems))
