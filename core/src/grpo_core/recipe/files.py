"""Recipe files: YAML or TOML, with the chain of recipes they extend.

`extends` names another file, relative to this one, or a registered recipe; what it says lies below what this file says.
Bare names in a registered recipe, and in files that it extends, keep the meaning they have for its distribution (see
`plugins/namespace.py`). Gives a layer; values are validated later.
"""

from __future__ import annotations

import importlib.resources
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core.errors import PluginError, Problem, RecipeError, UnknownComponent
from grpo_core.plugins.catalog import Catalog, Entry
from grpo_core.plugins.namespace import Namespace, namespace_of
from grpo_core.plugins.specs import RecipeSpec
from grpo_core.recipe.layers import Layer, NamespacedOrigin, get_value, make_layer, merge
from grpo_core.recipe.syntax import KeyPath, Parsed, RecipeSyntaxError, all_paths, parse_yaml
from grpo_core.regular_files import read_text, shown, unusual_kind

__all__ = [
    "FindRecipe",
    "RecipeFile",
    "depends_on_its_folder",
    "is_file_reference",
    "locate_recipe",
    "read_recipe",
    "registered_recipe",
    "shipped_path",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFile:
    """A recipe file and who ships it."""

    path: Path
    """Absolute."""
    owner: str | None = None
    """The distribution that registers it, or the recipe that extends it; None: it is a user's own."""


FindRecipe = Callable[[str, Namespace | None], RecipeFile]
"""Gives a registered recipe by its name, looked up in a namespace; raises `UnknownComponent` for a name nothing
registers."""

SUFFIXES = (".yaml", ".yml", ".json", ".toml")
"""JSON is read as the YAML that it is."""


def is_file_reference(text: str) -> bool:
    """Whether a recipe is named by its file (`./a.yaml`, `b.toml`) and not by a registered name."""
    return text.startswith((".", "/", "~")) or text.lower().endswith(SUFFIXES)


def locate_recipe(
    text: str, *, find: FindRecipe, base: Path, owner: str | None = None, namespace: Namespace | None = None
) -> RecipeFile:
    """The file that a reference to a recipe leads to; relative paths start at the folder `base`.

    `owner` and `namespace` are those of the recipe that the reference is in: None where a user wrote it.
    """
    if is_file_reference(text):
        return RecipeFile(path=Path(os.path.abspath(os.path.join(base, os.path.expanduser(text)))), owner=owner)
    try:
        return find(text, namespace)
    except UnknownComponent as error:
        if kind := unusual_kind(base / text) or ("a file" if (base / text).is_file() else None):
            message = f"{shown(text)} is no recipe that a plugin registers; here it is {kind}"
            advice = "name the recipe file in it" if kind == "a folder" else f"write ./{text} to read it as YAML"
            raise RecipeError([Problem(path="", message=f"{message}: {advice}")]) from error
        raise


def registered_recipe(name: str, *, catalog: Catalog) -> RecipeFile:
    """The file of a recipe that a plugin ships; raises `UnknownComponent`, or `PluginError` when it is not there."""
    entry = catalog.get("recipe", name)
    return RecipeFile(path=shipped_path(entry), owner=entry.distribution)


def shipped_path(entry: Entry) -> Path:
    """Where the file of a registered recipe is; raises `PluginError` when it is not there."""
    assert isinstance(entry.spec, RecipeSpec)
    try:
        file = Path(str(importlib.resources.files(entry.spec.package) / entry.spec.path))
    except ModuleNotFoundError:
        file = Path(entry.spec.path)
    if not file.is_file():
        message = f"'{entry.qualified_name}' registers a recipe file that is not there: {entry.spec.path}"
        raise PluginError(f"{message} in package '{entry.spec.package}'", hint="Report it to the author of the plugin.")
    return file


def read_recipe(file: RecipeFile, *, find: FindRecipe) -> Layer:
    """Read a recipe file and everything it extends, merged.

    Raises RecipeError when a file cannot be read or the chain comes back to itself, `UnknownComponent` for an unknown
    registered name in `extends`.
    """
    return _read_chain(file, find, ())


def depends_on_its_folder(file: Path) -> bool:
    """Whether a recipe has relative paths, so that a copy of it elsewhere would not find what they lead to.

    Raises RecipeError when it cannot be read.
    """
    values = _parse(file).value
    extends = values.pop("extends", None)
    one, other = (make_layer(values, {}, base=Path(base)) for base in ("/a", "/b"))
    return (
        (isinstance(extends, str) and is_file_reference(extends))
        or one.values != other.values
        or one.problems != other.problems
    )


def _read_chain(found: RecipeFile, find: FindRecipe, above: tuple[Path, ...]) -> Layer:
    file = found.path
    if file in above:
        chain = " -> ".join(path.name for path in (*above[above.index(file) :], file))
        raise RecipeError([Problem(path="extends", message=f"the recipes extend each other: {chain}")])
    parsed = _parse(file)
    values = parsed.value
    namespace = None if found.owner is None else namespace_of(found.owner, _required(values))
    origins = _origins(parsed, file.name, namespace)
    extends = values.pop("extends", None)
    layer = make_layer(values, {path: at for path, at in origins.items() if path != ("extends",)}, base=file.parent)
    if extends is None:
        return layer
    if not isinstance(extends, str):
        message = f"must be the path of a recipe file or the name of a recipe, not {extends!r}"
        raise RecipeError([Problem(path="extends", message=message, origin=origins.get(("extends",)))])
    below = locate_recipe(extends, find=find, base=file.parent, owner=found.owner, namespace=namespace)
    return merge(_read_chain(below, find, (*above, file)), layer)


def _required(values: Mapping[str, Any]) -> list[str]:
    """The recipe's `plugins.require`, as far as it is well formed."""
    required = get_value(values, ("plugins", "require"))
    return [text for text in required if isinstance(text, str)] if isinstance(required, list) else []


def _parse(file: Path) -> Parsed:
    try:
        text = read_text(file)
        parsed = _parse_toml(text) if file.suffix.lower() == ".toml" else parse_yaml(text)
    except OSError as error:
        raise RecipeError([Problem(path="", message=f"{shown(str(file))} cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise RecipeError([Problem(path="", message=f"'{file}' is not text in UTF-8")]) from None
    except RecipeSyntaxError as fault:
        origin = file.name if fault.line is None else f"{file.name}:{fault.line}"
        raise RecipeError([Problem(path="", message=fault.message, origin=origin)]) from None
    if parsed.value is None:
        return Parsed({}, {})
    if not isinstance(parsed.value, dict):
        message = "a recipe is a mapping of settings, such as model: and rewards:; this is none"
        raise RecipeError([Problem(path="", message=message, origin=file.name)])
    return parsed


def _parse_toml(text: str) -> Parsed:
    try:
        return Parsed(tomllib.loads(text), {})
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:  # ValueError: an absurdly long number
        raise RecipeSyntaxError(str(error) or "values are nested too deeply") from None


def _origins(parsed: Parsed, shown: str, namespace: Namespace | None) -> dict[KeyPath, str]:
    if parsed.lines:
        origins = {path: f"{shown}:{line}" for path, line in parsed.lines.items() if path}
    else:
        origins = dict.fromkeys(all_paths(parsed.value), shown)
    return origins if namespace is None else {path: NamespacedOrigin(text, namespace) for path, text in origins.items()}
