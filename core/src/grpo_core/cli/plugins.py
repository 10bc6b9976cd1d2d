"""`grpoctl plugins`: what is installed, what each component takes, and what is wrong with what is not loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from grpo_core.cli.common import JsonFlag, PluginFiles, load_plugins
from grpo_core.cli.console import print_json

if TYPE_CHECKING:
    pass

__all__ = ["register"]

_app = typer.Typer(no_args_is_help=True, help="What is installed, and what is wrong with what is not loaded.")


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    app.add_typer(_app, name="plugins")


@_app.command("list")
def list_plugins(plugin: PluginFiles = None, as_json: JsonFlag = False) -> None:
    """All plugins, loaded or not, and their components."""
    from grpo_core.cli import plugin_facts, plugin_views

    host = load_plugins(plugin, lenient=True)
    if as_json:
        print_json(plugin_facts.of_host(host))
    else:
        plugin_views.show_host(host)


@_app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A plugin, or a component: name or plugin/name.")],
    plugin: PluginFiles = None,
    as_json: JsonFlag = False,
) -> None:
    """One plugin, or one component with its options and what it needs."""
    from grpo_core.cli import plugin_facts, plugin_views

    host = load_plugins(plugin, lenient=True)
    found = plugin_facts.find_plugin(host, name)
    if found is not None:
        if as_json:
            print_json(plugin_facts.of_plugin(host, found))
        else:
            plugin_views.show_plugin(host, found)
        return
    entries = plugin_facts.find_components(host, name)
    if as_json:
        print_json([plugin_facts.of_component(entry) for entry in entries])
    else:
        for entry in entries:
            plugin_views.show_component(entry)


@_app.command("doctor")
def doctor(
    name: Annotated[str | None, typer.Argument(help="A plugin; default: all.")] = None,
    plugin: PluginFiles = None,
    as_json: JsonFlag = False,
) -> None:
    """Why plugins are not loaded: stage, reason, place, hint and traceback; and what loaded ones register without
    having it, or import that takes seconds. Exit code 3 when there are any."""
    from grpo_core.cli import plugin_checks, plugin_facts, plugin_views
    from grpo_core.plugins.verdicts import Admitted, Quarantined

    host = load_plugins(plugin, warn=False, lenient=True)
    asked = plugin_facts.all_plugins(host) if name is None else [plugin_facts.get_plugin(host, name)]
    sound = [each for each in asked if isinstance(each, Admitted)]
    faults = {each.distribution: plugin_checks.faults_of(host, each) for each in sound}
    if as_json:
        print_json([plugin_facts.with_health(host, each, faults.get(each.distribution, ())) for each in asked])
    else:
        plugin_views.show_health(host, asked, faults)
    if any(faults.values()) or any(isinstance(each, Quarantined) and each.stage != "blocked" for each in asked):
        raise typer.Exit(3)
