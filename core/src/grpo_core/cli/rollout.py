"""`grpoctl rollout`: a rollout engine as a server of its own, started by whichever backend has one.

What the server is and does is the backend's; this finds it and hands over.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from grpo_core.cli.common import PluginFiles, load_plugins
from grpo_core.errors import PluginError, RecipeError, UsageError

if TYPE_CHECKING:
    from grpo_core.plugins.catalog import Catalog, Entry
    from grpo_core.plugins.specs import RolloutSpec
    from grpo_core.protocols import RolloutServer
    from grpo_core.recipe.schema import ModelSettings

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rollout", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(rollout)


def rollout(
    context: typer.Context,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PATH", help="Folder in Hugging Face layout, or hub id.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option("--recipe", metavar="FILE|NAME", help="Serve the model of a recipe.")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option("--rollout", metavar="NAME", help="Rollout backend. Default: the only one that has a server."),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 8000,
    plugin: PluginFiles = None,
) -> None:
    """Serve a model for the rollouts of runs elsewhere. Options that are not listed here are the engine's own."""
    from grpo_core.plugins.targets import load_target
    from grpo_core.recipe.code import code_of_model, list_code

    served, origins = _model(model, recipe, plugin)
    list_code(code_of_model(served), origins, to=sys.stderr)
    entry = _serving(load_plugins(plugin).catalog, backend)
    serve = cast("RolloutServer", load_target(str(_spec(entry).serve)))
    raise typer.Exit(serve(served, host=host, port=port, arguments=context.args))


def _model(given: str | None, recipe: str | None, plugin: list[Path] | None) -> tuple[ModelSettings, dict[str, str]]:
    """The model that is given, or else the recipe's, as `grpoctl train` finds it, and who set what; raises
    `RecipeError` for one that is not there."""
    from grpo_core.cli.planning import gather
    from grpo_core.recipe.existence import absent_files
    from grpo_core.recipe.schema import ModelSettings

    layer = gather(recipe, {"plugin": plugin, "model": given})
    problems = [each for each in (*layer.problems, *absent_files(layer)) if each.path.partition(".")[0] == "model"]
    if problems:
        raise RecipeError(problems)
    section = layer.values.get("model")
    section = {"path": section} if isinstance(section, str) else section
    if not isinstance(section, dict) or not section.get("path"):
        raise UsageError("there is no model to serve", hint="give one with --model, or a --recipe that has one")
    return ModelSettings.model_validate(section), layer.dotted_origins()


def _serving(catalog: Catalog, name: str | None) -> Entry:
    """The backend that is asked for, or the only one that can."""
    able = [entry for entry in catalog.entries("rollout") if _spec(entry).serve is not None]
    names = ", ".join(entry.spec.name for entry in able)
    if name is not None:
        entry = catalog.get("rollout", name)
        if _spec(entry).serve is None:
            raise UsageError(f"the rollout backend '{name}' has no server", hint=f"these have: {names or 'none'}")
        return entry
    if not able:
        raise PluginError(
            "no rollout backend that is installed has a server",
            hint="install a plugin with one; `grpoctl plugins list` shows what there is",
        )
    if len(able) > 1:
        raise UsageError(f"several rollout backends have a server: {names}", hint="choose one with --rollout")
    return able[0]


def _spec(entry: Entry) -> RolloutSpec:
    return cast("RolloutSpec", entry.spec)
