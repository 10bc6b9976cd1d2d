"""Every error the framework raises on purpose.

    GrpoError                    exit code
    ├── UsageError               2   a flag or argument of the command line
    ├── RecipeError              2   a recipe, all problems together; 3 when all are of plugins
    ├── DataError                2   a dataset, a row, a column
    ├── PluginError              3   a plugin that cannot be loaded
    │   ├── UnknownComponent     3   a name that nothing registers
    │   ├── AmbiguousComponent   3   a name that several plugins register
    │   └── BrokenReference      3   "module:attr" or "file.py:attr" that does not lead to an object
    ├── RewardError              4   a reward that cannot be bound, or that failed too often
    ├── RolloutError             4   generation
    ├── TrainerError             4   the update
    ├── CheckpointError          4   saving or restoring
    ├── RankError                4   another process of the run failed, died, or did not come
    └── Collapse                 4   a run whose numbers say that going on is pointless

A message says what is wrong with the value and where; `hint` says what to do. The command line prints both and
shows a traceback only with `--debug`, which a process of several does of its own accord for any other error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "AmbiguousComponent",
    "BrokenReference",
    "CheckpointError",
    "Collapse",
    "DataError",
    "GrpoError",
    "PluginError",
    "Problem",
    "RankError",
    "RecipeError",
    "RewardError",
    "RolloutError",
    "TrainerError",
    "UnknownComponent",
    "UsageError",
]


class GrpoError(Exception):
    """An error with a message for a person: what is wrong and where, and a hint that says what to do."""

    exit_code = 4

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(GrpoError):
    """A flag or argument of the command line is wrong."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a recipe."""

    path: str
    """Where: the dotted path of the key, `trainer.learning_rate`; empty for the recipe as a whole."""
    message: str
    """What is wrong, with the value, and what to do."""
    origin: str | None = None
    """Who set it: `recipe.yaml:9`, `--set`, `--learning-rate`; None when nobody did."""
    is_of_plugins: bool = False
    """Whether a plugin lacks what was asked for: a `PluginError`, had it been the only problem."""

    def __str__(self) -> str:
        where = f" ({self.origin})" if self.origin else ""
        return f"{self.path}: {self.message}{where}" if self.path else f"{self.message}{where}"


class RecipeError(GrpoError):
    """A recipe is wrong; carries every problem found, not only the first."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        count = len(self.problems)
        head = "the recipe has a problem" if count == 1 else f"the recipe has {count} problems"
        super().__init__("\n  ".join([f"{head}:", *map(str, self.problems)]), hint=hint)
        if self.problems and all(problem.is_of_plugins for problem in self.problems):
            self.exit_code = PluginError.exit_code


class DataError(GrpoError):
    """A dataset cannot be read, or a row or column of it cannot be used."""

    exit_code = 2


class PluginError(GrpoError):
    """A plugin cannot be loaded, or a component cannot be built."""

    exit_code = 3


class UnknownComponent(PluginError):
    """No plugin registers a component of this name."""


class AmbiguousComponent(PluginError):
    """Several plugins register a component of this name."""


class BrokenReference(PluginError):
    """A reference `pkg.mod:attr` or `file.py:attr` does not lead to an object."""


class RewardError(GrpoError):
    """A reward cannot be bound to the dataset, or failed for more samples than the ceiling allows."""


class RolloutError(GrpoError):
    """Generation failed, or its result breaks the contract."""


class TrainerError(GrpoError):
    """The update failed."""


class CheckpointError(GrpoError):
    """A checkpoint cannot be written or restored."""


class RankError(GrpoError):
    """Another process of the run failed, died, or did not come in time."""


class Collapse(GrpoError):
    """The numbers of a run say that going on is pointless: NaN, infinity, or no reward at all."""
