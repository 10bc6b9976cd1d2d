"""How `grpoctl plugins` looks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from grpo_core.cli.console import stdout
from grpo_core.cli.plugin_facts import Plugin, all_plugins, components_of, options_schema, status
from grpo_core.cli.tables import Cell, print_table
from grpo_core.errors import GrpoError
from grpo_core.plugins.catalog import Entry, missing_requirements
from grpo_core.plugins.health import health_of
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.specs import KINDS, ComponentSpec
from grpo_core.plugins.verdicts import Admitted, Quarantined

__all__ = ["show_component", "show_health", "show_host", "show_plugin"]

_STYLES = {"loaded": "green", "not loaded": "bold red", "switched off": "yellow"}
_OWN_LINES = ("name", "summary", "target", "options", "requires", "aliases")


def show_host(host: PluginHost) -> None:
    """`plugins list`."""
    print_table(
        ("plugin", "version", "status", "provides"),
        [
            (plugin.distribution, plugin.version, _styled_status(plugin), "\n".join(_provides(host, plugin)))
            for plugin in all_plugins(host)
        ],
    )
    _show_clashes(host)


def show_plugin(host: PluginHost, plugin: Plugin) -> None:
    """`plugins show` of a plugin."""
    if isinstance(plugin, Quarantined):
        _show_fault(plugin)
        return
    stdout.print(Text.assemble((plugin.distribution, "bold"), f" {plugin.version}  ", _styled_status(plugin)))
    if plugin.observers:
        stdout.print("It watches runs.")
    entries = components_of(host, plugin)
    if entries:
        print_table(
            ("kind", "name", "other names", "summary"),
            [(e.spec.kind, e.spec.name, ", ".join(e.spec.aliases), "\n".join(_summary(e))) for e in entries],
        )


def show_component(entry: Entry) -> None:
    """`plugins show` of a component."""
    spec = entry.spec
    stdout.print(Text.assemble((f"{spec.kind} {entry.qualified_name}", "bold"), f" {entry.version}"))
    stdout.print(Text(f"  {spec.summary}"))
    facts = list(_facts(entry))
    width = max(len(label) for label, _ in facts)
    for label, value in facts:
        stdout.print(Text.assemble("  ", (label.ljust(width), "dim"), "  ", value))
    if isinstance(spec, ComponentSpec):
        _show_options(entry)
    stdout.print()


def show_health(host: PluginHost, asked: Sequence[Plugin], faults: Mapping[str, Sequence[str]]) -> None:
    """`plugins doctor`; `faults` are those of loaded plugins by their name."""
    sound = [plugin for plugin in asked if isinstance(plugin, Admitted)]
    for plugin in asked:
        if isinstance(plugin, Quarantined):
            _show_fault(plugin)
    for plugin in sound:
        for fault in faults.get(plugin.distribution, ()):
            stdout.print(Text.assemble((f"{plugin.distribution}: ", "bold red"), fault))
    if sound:
        names = ", ".join(plugin.distribution for plugin in sound)
        stdout.print(Text.assemble(("loaded: ", "green"), names))
    for plugin in sound:
        for line in health_of(plugin):
            stdout.print(Text.assemble((f"{plugin.distribution}: ", "bold"), line))
        for entry in components_of(host, plugin):
            for requirement in missing_requirements(entry.spec):
                stdout.print(Text(f"{entry.qualified_name} cannot be used: it needs {requirement}"))
    if len(asked) == len(all_plugins(host)):
        _show_clashes(host)


def _provides(host: PluginHost, plugin: Plugin) -> Iterator[str]:
    if isinstance(plugin, Quarantined):
        yield "" if plugin.stage == "blocked" else plugin.explanation
        return
    entries = components_of(host, plugin)
    for kind in KINDS:
        names = [entry.spec.name for entry in entries if entry.spec.kind == kind]
        if names:
            yield f"{kind}: {', '.join(names)}"
    if plugin.observers:
        yield "watches runs"


def _styled_status(plugin: Plugin) -> Text:
    text = status(plugin)
    return Text(text, style=_STYLES[text])


def _show_clashes(host: PluginHost) -> None:
    for (kind, name), qualified in host.catalog.clashes().items():
        choices = " or ".join(qualified)
        stdout.print(Text(f"several plugins register a {kind} '{name}': write {choices}", style="yellow"))


def _show_fault(plugin: Quarantined) -> None:
    stdout.print(Text.assemble((plugin.distribution, "bold"), f" {plugin.version}  ", _styled_status(plugin)))
    facts = {"stage": plugin.stage, "reason": plugin.reason, "where": plugin.where, "what to do": plugin.hint}
    for label, value in facts.items():
        if value:
            stdout.print(Text.assemble("  ", (label.ljust(10), "dim"), "  ", value))
    for line in (plugin.traceback or "").splitlines():
        stdout.print(Text(f"    {line}", style="dim"))
    stdout.print()


def _summary(entry: Entry) -> Iterator[str]:
    yield entry.spec.summary
    for requirement in missing_requirements(entry.spec):
        yield f"needs {requirement}, which is not installed"


def _facts(entry: Entry) -> Iterator[tuple[str, str | Text]]:
    spec = entry.spec
    if spec.aliases:
        yield "other names", ", ".join(spec.aliases)
    if isinstance(spec, ComponentSpec):
        yield "target", spec.target
        missing = missing_requirements(spec)
        for requirement in spec.requires:
            met = requirement not in missing
            yield "requires", Text.assemble(requirement, ("  installed", "green") if met else ("  missing", "bold red"))
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if field.name not in _OWN_LINES and value not in (None, (), frozenset()):
            shown = sorted(value) if isinstance(value, frozenset) else value
            yield field.name, ", ".join(shown) if isinstance(shown, list | tuple) else _shown(shown)


def _show_options(entry: Entry) -> None:
    try:
        schema = options_schema(entry)
    except GrpoError as error:
        stdout.print(Text(f"  Its options cannot be shown: {error.message}", style="red"))
        return
    if schema is None:
        stdout.print(Text("  It takes no options."))
        return
    properties = schema.get("properties")
    required = schema.get("required")
    if isinstance(properties, Mapping):
        rows = [
            _option_row(name, about, required=isinstance(required, list) and name in required)
            for name, about in properties.items()
        ]
        print_table(("option", "type", "default", "meaning"), rows)


def _option_row(name: str, about: Mapping[str, object], *, required: bool) -> tuple[Cell, ...]:
    default = Text("required", style="bold") if required else _shown(about.get("default"))
    return name, _type_of(about), default, " ".join(str(about.get("description", "")).split())


def _type_of(about: Mapping[str, object]) -> str:
    """`integer ≥ 1`, `a | b`: the type of a JSON schema's property, in brief."""
    choices = about.get("enum") or ([about["const"]] if "const" in about else None)
    if isinstance(choices, list):
        return " | ".join(map(_shown, choices))
    alternatives = about.get("anyOf")
    if isinstance(alternatives, list):
        return " | ".join(_type_of(alternative) for alternative in alternatives)
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {_shown(about[key])}" for key, sign in bounds.items() if key in about]
    reference = str(about.get("$ref", "")).rpartition("/")[2]
    return " ".join([str(about.get("type") or reference or "any"), *limits])


def _shown(value: object) -> str:
    """As a recipe writes it."""
    words: Mapping[object, str] = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)
