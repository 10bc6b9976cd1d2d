"""What `grpoctl plugins` tells about plugins and components, as plain values: its `--json`, and what its views read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from packaging.utils import canonicalize_name

from grpo_core.errors import GrpoError, PluginError, UnknownComponent
from grpo_core.plugins.catalog import Entry, missing_requirements
from grpo_core.plugins.health import health_of
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.specs import KINDS, ComponentSpec
from grpo_core.plugins.targets import load_target
from grpo_core.plugins.verdicts import Admitted, Quarantined

__all__ = [
    "Plugin",
    "all_plugins",
    "components_of",
    "find_components",
    "find_plugin",
    "get_plugin",
    "of_component",
    "of_host",
    "of_plugin",
    "options_schema",
    "status",
    "with_health",
]

Plugin = Admitted | Quarantined


def all_plugins(host: PluginHost) -> list[Plugin]:
    """Every plugin found, sorted by name."""
    return sorted((*host.admitted, *host.quarantined, *host.blocked), key=lambda plugin: plugin.distribution)


def find_plugin(host: PluginHost, name: str) -> Plugin | None:
    """The plugin of this distribution name, however spelled."""
    wanted = canonicalize_name(name)
    return next((each for each in all_plugins(host) if canonicalize_name(each.distribution) == wanted), None)


def get_plugin(host: PluginHost, name: str) -> Plugin:
    """The same; raises `PluginError` when there is none."""
    found = find_plugin(host, name)
    if found is None:
        raise PluginError(f"there is no plugin '{name}'", hint=_nearest(name, _plugin_names(host)))
    return found


def find_components(host: PluginHost, name: str) -> list[Entry]:
    """The components of any kind with this name, alias or `plugin/name`; raises `UnknownComponent` for none."""
    owner, slash, short = name.rpartition("/")
    found = [
        entry
        for entry in host.catalog.entries()
        if short in (entry.spec.name, *entry.spec.aliases)
        and (not slash or canonicalize_name(owner) == canonicalize_name(entry.distribution))
    ]
    if not found:
        names = {spelling for entry in host.catalog.entries() for spelling in (entry.spec.name, *entry.spec.aliases)}
        raise UnknownComponent(
            f"there is no plugin or component '{name}'", hint=_nearest(name, [*_plugin_names(host), *sorted(names)])
        )
    return found


def components_of(host: PluginHost, plugin: Plugin) -> list[Entry]:
    """What a plugin registers, sorted by kind and name."""
    entries = [entry for entry in host.catalog.entries() if entry.distribution == plugin.distribution]
    return sorted(entries, key=lambda entry: KINDS.index(entry.spec.kind))


def status(plugin: Plugin) -> str:
    """`loaded`, `not loaded` or `switched off`."""
    if isinstance(plugin, Admitted):
        return "loaded"
    return "switched off" if plugin.stage == "blocked" else "not loaded"


def of_host(host: PluginHost) -> dict[str, object]:
    """`plugins list --json`."""
    return {
        "plugins": [of_plugin(host, plugin) for plugin in all_plugins(host)],
        "clashes": [
            {"kind": kind, "name": name, "write": list(qualified)}
            for (kind, name), qualified in host.catalog.clashes().items()
        ],
    }


def of_plugin(host: PluginHost, plugin: Plugin) -> dict[str, object]:
    """A plugin, with its components or with what is wrong."""
    facts: dict[str, object] = {
        "distribution": plugin.distribution,
        "version": plugin.version,
        "status": status(plugin),
    }
    if isinstance(plugin, Quarantined):
        fault = dataclasses.asdict(plugin)
        return facts | {key: fault[key] for key in ("stage", "reason", "where", "hint", "traceback")}
    return facts | {
        "observes": bool(plugin.observers),
        "components": [
            {"kind": entry.spec.kind, "name": entry.spec.name, "summary": entry.spec.summary}
            for entry in components_of(host, plugin)
        ],
    }


def with_health(host: PluginHost, plugin: Plugin, faults: Sequence[str]) -> dict[str, object]:
    """A plugin, with the faults that the doctor found and what it says of how it fares."""
    facts = of_plugin(host, plugin)
    if isinstance(plugin, Quarantined):
        return facts
    return facts | {"faults": list(faults), "health": list(health_of(plugin))}


def of_component(entry: Entry) -> dict[str, object]:
    """`plugins show NAME --json` of a component: its spec, what is missing, and the JSON schema of its options."""
    facts: dict[str, object] = {
        "kind": entry.spec.kind,
        "qualified_name": entry.qualified_name,
        "distribution": entry.distribution,
        "version": entry.version,
    }
    spec = dataclasses.asdict(entry.spec)
    facts |= {key: sorted(value) if isinstance(value, frozenset) else value for key, value in spec.items()}
    facts["missing_requirements"] = missing_requirements(entry.spec)
    try:
        facts["options_schema"] = options_schema(entry)
    except GrpoError as error:
        facts["options_error"] = error.message
    return facts


def options_schema(entry: Entry) -> Mapping[str, object] | None:
    """The JSON schema of a component's options, None when it takes none; raises `GrpoError` when it cannot be had."""
    if not isinstance(entry.spec, ComponentSpec) or entry.spec.options is None:
        return None
    model = load_target(entry.spec.options)
    make_schema = getattr(model, "model_json_schema", None)
    if make_schema is None:
        raise PluginError(f"'{entry.spec.options}' is not a pydantic model")
    schema: Mapping[str, object] = make_schema()
    return schema


def _plugin_names(host: PluginHost) -> list[str]:
    return [plugin.distribution for plugin in all_plugins(host)]


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=3, cutoff=0.65)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else "`grpoctl plugins list` shows what there is."
