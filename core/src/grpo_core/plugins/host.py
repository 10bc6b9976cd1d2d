"""All plugins of this environment, loaded once by a command: what was admitted, what was not, and the catalog.

Only the launcher does this. Ranks and workers read the plan and import the targets it names (`targets`, `observers`).
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from grpo_core.errors import PluginError, UsageError
from grpo_core.plugins.airlock import prove
from grpo_core.plugins.catalog import Catalog
from grpo_core.plugins.discover import CORE, discover, unknown_names
from grpo_core.plugins.verdicts import Admitted, Candidate, Quarantined

__all__ = ["DISABLE_SWITCH", "STRICT_SWITCH", "PluginHost", "warn_quarantined"]

DISABLE_SWITCH = "GRPO_DISABLE_PLUGINS"
"""Names of distributions to leave out, separated by commas."""
STRICT_SWITCH = "GRPO_STRICT_PLUGINS"
"""Set to 1, as authors do in their tests: the first plugin that is not sound stops the command, with its traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginHost:
    """Every plugin found, by what became of it."""

    admitted: tuple[Admitted, ...]
    """Loaded."""
    quarantined: tuple[Quarantined, ...]
    """Not loaded, because something is wrong with them."""
    blocked: tuple[Quarantined, ...]
    """Not loaded, because somebody switched them off."""
    warnings: tuple[str, ...]
    """Names to switch off that nothing has."""
    catalog: Catalog
    """The components of the admitted ones."""

    @classmethod
    def load(
        cls, *, disable: Sequence[str] = (), files: Sequence[Path] = (), require: Sequence[str] = ()
    ) -> PluginHost:
        """Find, prove and sort all plugins.

        Args:
            disable: distributions to leave out, beside those in GRPO_DISABLE_PLUGINS.
            files: one-file plugins, `--plugin FILE`.
            require: distributions that must be loaded, as `grpo-rewards-math>=0.1`.

        Raises:
            PluginError: a required one is missing, not loaded, or of another version; core itself is broken; or, with
                GRPO_STRICT_PLUGINS=1, any plugin is.
            UsageError: a file is not there, or a requirement is malformed.
        """
        disabled = [*_switched_off(), *disable]
        if CORE in {str(canonicalize_name(name)) for name in disabled}:
            raise UsageError(
                f"{CORE} cannot be switched off", hint=f"Take it out of {DISABLE_SWITCH} or plugins.disable."
            )
        candidates, ruled_out = discover(disabled=disabled)
        known = [*(found.distribution for found in candidates), *(other.distribution for other in ruled_out)]
        verdicts = [*map(prove, [*candidates, *_from_files(files)]), *ruled_out]
        admitted = tuple(verdict for verdict in verdicts if isinstance(verdict, Admitted))
        not_loaded = sorted(
            (verdict for verdict in verdicts if isinstance(verdict, Quarantined)),
            key=lambda plugin: plugin.distribution,
        )
        host = cls(
            admitted=admitted,
            quarantined=tuple(plugin for plugin in not_loaded if plugin.stage != "blocked"),
            blocked=tuple(plugin for plugin in not_loaded if plugin.stage == "blocked"),
            warnings=tuple(unknown_names(disabled, known)),
            catalog=Catalog(admitted, not_loaded),
        )
        host._check_core()
        host._check_strictly()
        host._check_required(require)
        return host

    def _check_core(self) -> None:
        for plugin in self.quarantined:
            if plugin.distribution == CORE:
                raise PluginError(
                    f"{plugin.line}\n{plugin.traceback or ''}", hint="This is a fault of grpo-core itself."
                )
        if not any(plugin.distribution == CORE for plugin in self.admitted):
            raise PluginError(f"{CORE} is not installed, only its files are on the path", hint=f"pip install {CORE}")

    def _check_strictly(self) -> None:
        if self.quarantined and os.environ.get(STRICT_SWITCH) == "1":
            first = self.quarantined[0]
            raise PluginError("\n".join(filter(None, [first.line, first.traceback])), hint=first.hint)

    def _check_required(self, require: Sequence[str]) -> None:
        problems = list(filter(None, map(self._problem_with, require)))
        if problems:
            raise PluginError("\n  ".join(["a plugin that this run requires is not there:", *problems]))

    def _problem_with(self, text: str) -> str | None:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(
                f"'{text}' is not a requirement", hint="Write a name and versions: grpo-acme>=1.2"
            ) from error
        name = canonicalize_name(requirement.name)
        for plugin in self.admitted:
            if canonicalize_name(plugin.distribution) == name:
                fits = requirement.specifier.contains(plugin.version, prereleases=True)
                return None if fits else f"{name} is {plugin.version}, needed is {text}: pip install '{text}'"
        for other in (*self.quarantined, *self.blocked):
            if canonicalize_name(other.distribution) == name:
                return other.line
        return _not_a_plugin(name, text)


def warn_quarantined(host: PluginHost) -> None:
    """One line on stderr for each plugin that is not loaded; a command calls it once."""
    for warning in host.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for plugin in host.quarantined:
        print(f"{plugin.line}. Details: grpoctl plugins doctor {plugin.distribution}", file=sys.stderr)


def _switched_off() -> list[str]:
    return [name.strip() for name in os.environ.get(DISABLE_SWITCH, "").split(",") if name.strip()]


def _from_files(files: Sequence[Path]) -> Iterator[Candidate]:
    seen: dict[str, Path] = {}
    for file in files:
        path = Path(os.path.abspath(os.path.expanduser(file)))
        if not os.path.isfile(path) or path.suffix != ".py":
            raise UsageError(f"--plugin {file}: there is no such Python file")
        if seen.setdefault(path.name, path) != path:
            raise UsageError(f"--plugin: two files are called {path.name}", hint="A file's name is its plugin's name.")
        yield Candidate(distribution=path.name, version="(file)", modules=(str(path),))


def _not_a_plugin(name: str, text: str) -> str:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} is not installed: pip install '{text}'"
    return f"{name} {version} is installed, but it is not a plugin"
