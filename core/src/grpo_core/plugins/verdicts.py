"""What happens to an installed plugin: a candidate is admitted whole, or quarantined with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grpo_core.plugins.specs import ComponentSpec, RecipeSpec

__all__ = ["Admitted", "Candidate", "Quarantined", "Stage"]

Stage = Literal["blocked", "metadata", "api", "version", "import", "hooks", "register"]
"""Where a plugin stopped: switched off; unreadable metadata; written for another version of the hooks, or in a group of
entry points that is nearly ours; for another grpo-core; its import; its hooks' names and signatures; what its
registration hooks returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An installed plugin nobody has imported yet."""

    distribution: str
    """Canonical name of the distribution, or the file name of a `--plugin FILE`: the plugin's identity."""
    version: str
    """Of the distribution; `file` for a file."""
    modules: tuple[str, ...]
    """`pkg.plugin` of each of its entry points, or `/absolute/file.py`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A plugin that proved sound."""

    distribution: str
    """As of the candidate."""
    version: str
    """As of the candidate."""
    specs: tuple[ComponentSpec | RecipeSpec, ...]
    """What it registers."""
    modules: tuple[str, ...] = ()
    """As of the candidate."""
    observers: tuple[str, ...] = ()
    """Those of its modules that have observer hooks."""
    health: tuple[str, ...] = ()
    """Those of its modules that have the hook `grpo_health`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A plugin that is not loaded, and why."""

    distribution: str
    """As of the candidate."""
    version: str
    """As of the candidate."""
    stage: Stage
    """How far it came."""
    reason: str
    """What is wrong, one line."""
    where: str | None = None
    """`grpo_acme/plugin.py:3`; None when no line of source is to blame."""
    hint: str | None = None
    """What its author or user can do."""
    traceback: str | None = None
    """Of the exception, if there was one."""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}: {self.explanation}"

    @property
    def line(self) -> str:
        """The one line that every command prints about it."""
        return f"{self.distribution} {self.version} is not loaded: {self.explanation}"

    @property
    def explanation(self) -> str:
        """Reason and place."""
        return f"{self.reason} ({self.where})" if self.where else self.reason
