"""What `grpoctl plugins doctor` finds wrong with a plugin that is loaded: what it registers and does not have.

Targets are read off their source and not imported, as they may need an engine; options models are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pydantic import BaseModel

from grpo_core.cli.plugin_facts import components_of
from grpo_core.errors import GrpoError
from grpo_core.plugins.catalog import Entry
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.light import heavy_imports
from grpo_core.plugins.outline import check_target
from grpo_core.plugins.specs import ComponentSpec, DatasetSpec, RewardSpec, RolloutSpec
from grpo_core.plugins.targets import load_target
from grpo_core.plugins.verdicts import Admitted
from grpo_core.recipe.files import depends_on_its_folder, shipped_path
from grpo_core.trial.cases import read_cases, shipped_cases

__all__ = ["faults_of"]

_Check = Callable[[], object]
"""Raises `GrpoError` that says what is wrong."""


def faults_of(host: PluginHost, plugin: Admitted) -> list[str]:
    """One line for each thing that is wrong."""
    heavy = [
        f"its module {place} imports {what} when it is imported, which every command then waits for; import it in the "
        "target"
        for place in plugin.modules
        for what in heavy_imports(place)
    ]
    return [*heavy, *(fault for entry in components_of(host, plugin) for fault in _of_entry(entry))]


def _of_entry(entry: Entry) -> Iterator[str]:
    for label, check in _checks(entry):
        try:
            check()
        except GrpoError as error:
            yield f"{entry.spec.kind} {entry.spec.name}: {label}: {' '.join(str(error).split())}"


def _checks(entry: Entry) -> Iterator[tuple[str, _Check]]:
    spec = entry.spec
    if not isinstance(spec, ComponentSpec):
        yield "its file", lambda: depends_on_its_folder(shipped_path(entry))  # which reads it
        return
    targets = {"target": spec.target}
    if isinstance(spec, DatasetSpec) and spec.source is not None:
        targets["source"] = spec.source
    if isinstance(spec, RolloutSpec) and spec.serve is not None:
        targets["serve"] = spec.serve
    for field, target in targets.items():
        yield f"its {field}", partial(check_target, target)
    if spec.options is not None:
        yield "its options", partial(_check_model, spec.options)
    cases = shipped_cases(spec.target, spec.name) if isinstance(spec, RewardSpec) else None
    if cases is not None:
        yield "its cases", partial(read_cases, cases)


def _check_model(target: str) -> None:
    model = load_target(target)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise GrpoError(f"'{target}' is not a pydantic model")
