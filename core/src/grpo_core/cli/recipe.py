"""`grpoctl recipe`: recipes that plugins ship, and what a recipe says once everything is merged and looked up."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from grpo_core.cli.common import JsonFlag, PluginFiles, load_plugins
from grpo_core.cli.console import stderr
from grpo_core.cli.flags import takes_flags

__all__ = ["register"]

_app = typer.Typer(no_args_is_help=True, help="Recipes: the settings of a run in a file.")

_FOLDER_NOTE = """\
# Relative paths in this recipe start at its own folder: a copy elsewhere does not find what they lead to.
# Instead of a copy, write a recipe that begins with `extends: {name}` and says what is different."""

_RecipeArgument = Annotated[str, typer.Argument(help="A recipe file, or the name of a recipe.", metavar="FILE|NAME")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    app.add_typer(_app, name="recipe")


@_app.command("list")
def list_recipes(plugin: PluginFiles = None, as_json: JsonFlag = False) -> None:
    """The recipes that plugins ship."""
    from grpo_core.cli.tables import print_table

    entries = load_plugins(plugin).catalog.entries("recipe")
    if as_json:
        _print_json(
            [{"name": each.spec.name, "plugin": each.distribution, "summary": each.spec.summary} for each in entries]
        )
    else:
        print_table(
            ("name", "plugin", "summary"), [(each.spec.name, each.distribution, each.spec.summary) for each in entries]
        )


@_app.command("show")
def show(name: Annotated[str, typer.Argument(help="The name of a recipe.")], plugin: PluginFiles = None) -> None:
    """The file of a recipe, to read or to copy: grpoctl recipe show NAME > my.yaml."""
    from grpo_core.recipe.files import depends_on_its_folder, registered_recipe

    file = registered_recipe(name, catalog=load_plugins(plugin).catalog).path
    stderr.print(f"# {file}", markup=False)
    if depends_on_its_folder(file):
        typer.echo(_FOLDER_NOTE.format(name=name))
    typer.echo(file.read_text(encoding="utf-8"), nl=False)


@_app.command("check")
@takes_flags
def check(recipe: _RecipeArgument, **flags: Any) -> None:
    """Find everything that is wrong with a recipe, without data and model. Code that it names is listed, not run."""
    from grpo_core.cli.planning import gather, make_plan
    from grpo_core.objective import presets
    from grpo_core.recipe.code import code_of_plan, list_code

    plan, _ = make_plan(gather(recipe, flags), plugin_files=flags.get("plugin"))
    warnings = presets.warnings(
        plan.recipe.objective, updates_per_step=plan.batch.updates_per_step, advantage=plan.recipe.advantage
    )
    for warning in warnings:
        stderr.print(f"warning: {warning}", markup=False)
    batch = plan.batch
    typer.echo(
        f"{recipe} is sound: {batch.prompts_per_step} prompts × {batch.completions_per_prompt} completions a step, "
        f"rewards {', '.join(reward.name for reward in plan.rewards)}"
    )
    list_code(code_of_plan(plan), plan.origins)


@_app.command("explain")
@takes_flags
def explain(recipe: _RecipeArgument, as_json: JsonFlag = False, **flags: Any) -> None:
    """Every value of a run and who set it: a file and line, a flag, --set, or the default."""
    from grpo_core.cli.planning import gather, make_plan
    from grpo_core.cli.tables import print_table
    from grpo_core.recipe import explain as explaining
    from grpo_core.recipe.complaints import show_value

    plan, _ = make_plan(gather(recipe, flags), plugin_files=flags.get("plugin"))
    values = list(explaining.explain(plan))
    if as_json:
        _print_json({each.path: {"value": each.value, "origin": each.origin} for each in values})
    else:
        print_table(("setting", "value", "origin"), [(v.path, show_value(v.value), v.origin) for v in values])


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
