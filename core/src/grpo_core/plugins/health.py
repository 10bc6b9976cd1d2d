"""What plugins say of how they fare on this machine: the hook `grpo_health`, called for `grpoctl plugins doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import pluggy

from grpo_core.plugins import hookspecs
from grpo_core.plugins.faults import describe
from grpo_core.plugins.rules import HEALTH
from grpo_core.plugins.targets import load_module
from grpo_core.plugins.verdicts import Admitted

__all__ = ["health_of"]

_MOST_LINES = 100


def health_of(plugin: Admitted) -> tuple[str, ...]:
    """The lines of a plugin, each on one line; one that fails to give them is said to."""
    return tuple(line for place in plugin.health for line in _lines(place))


def _lines(place: str) -> list[str]:
    alone = pluggy.PluginManager(hookspecs.hookspec.project_name)
    alone.add_hookspecs(hookspecs)
    try:
        alone.register(load_module(place))
        results: list[Iterable[object]] = getattr(alone.hook, HEALTH)()
        return [" ".join(str(line).split()) for result in results for line in islice(result, _MOST_LINES)]
    except (Exception, SystemExit) as error:  # noqa: BLE001  a plugin's code; the doctor goes on to the next
        return [f"its {HEALTH} fails: {describe(error)}"]
