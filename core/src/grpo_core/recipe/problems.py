"""What is wrong with the settings of a run, collected while they are resolved, instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from grpo_core.errors import GrpoError, PluginError, Problem, RecipeError

__all__ = ["Problems", "origin_of", "with_origins"]


class Problems:
    """Problems with their path and who set the value there."""

    def __init__(self, origins: Mapping[str, str] | None = None, problems: Sequence[Problem] = ()) -> None:
        self.problems = list(problems)
        self._origins = origins or {}

    def add(self, path: str, message: str, *, is_of_plugins: bool = False) -> None:
        """Note a problem."""
        origin = origin_of(path, self._origins)
        self.problems.append(Problem(path=path, message=message, origin=origin, is_of_plugins=is_of_plugins))

    @contextmanager
    def at(self, section: str, key: str) -> Iterator[None]:
        """Note an error of the block at `section.key`; problems that have a path of their own, below `section`."""
        try:
            yield
        except RecipeError as error:
            for problem in error.problems:
                self.add(f"{section}.{problem.path}", problem.message, is_of_plugins=problem.is_of_plugins)
        except GrpoError as error:
            message = f"{error.message}. {error.hint}" if error.hint else error.message
            self.add(f"{section}.{key}", message, is_of_plugins=isinstance(error, PluginError))


def origin_of(path: str, origins: Mapping[str, str]) -> str | None:
    """Who set the value at a dotted path, or else the section it is in; None when nobody did."""
    while path and path not in origins:
        path = path.rpartition(".")[0]
    return origins.get(path)


@contextmanager
def with_origins(origins: Mapping[str, str]) -> Iterator[None]:
    """Let a RecipeError of the block say who set each value that it names."""
    try:
        yield
    except RecipeError as error:
        problems = [replace(each, origin=each.origin or origin_of(each.path, origins)) for each in error.problems]
        raise RecipeError(problems, hint=error.hint) from error
