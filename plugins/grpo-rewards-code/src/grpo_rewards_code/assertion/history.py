"""The test code as the script that it is: what the program met before an assertion, in order.

An assertion is judged by the statements that it names, from a fresh state. A program that keeps something for itself (a
counter in a module) gives its right answer only after all the calls before: those that were judged too, whatever they
gave. They are written down here, without what they are compared with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grpo_rewards_code.assertion.scope import Line, Scope, free_names
from grpo_rewards_code.assertion.split import Split
from grpo_rewards_code.executor.types import ExpressionRun
from grpo_rewards_code.problem.types import Replay

__all__ = ["History"]


class History:
    """The lines of test code, in the order in which Python meets them; grows."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._seen: set[int] = set()

    def add(self, lines: Iterable[Line]) -> None:
        """Lines that come next, also again."""
        for line in lines:
            self._lines.append(line)
            self._seen.add(id(line))

    def add_split(self, split: Split) -> Replay:
        """An assertion that comes next; how it is run after all that came before."""
        self._note(split.scope)
        replay = _Replay(self._lines, len(self._lines), split)
        self.add(split.parts)
        return replay

    def _note(self, scope: Scope) -> None:
        new = []
        for line in reversed(scope.lines):
            if id(line) in self._seen:
                break
            new.append(line)
        self.add(reversed(new))


class _Replay:
    """The runs of one assertion after everything before it."""

    def __init__(self, lines: list[Line], position: int, split: Split) -> None:
        self._lines = lines
        self._position = position
        self._split = split

    def __call__(self) -> tuple[tuple[ExpressionRun, ...], int]:
        """The runs, and how many evaluations come before the last of them; none where nothing does."""
        runs: list[ExpressionRun] = []
        calls = 0
        for index, part in enumerate(self._split.parts):
            kept = self._before(part, index)
            calls = sum(line.is_ours for line in kept)
            setup = "\n".join([*(line.source for line in kept), self._split.before])
            runs.append(ExpressionRun(expression=self._split.value or part.source, setup=setup))
        return (tuple(runs), calls) if calls else ((), 0)

    def _before(self, part: Line, index: int) -> list[Line]:
        """The calls of the program, and what the rest needs of the other lines: never one that only an answer needs."""
        names = set(free_names(ast.parse(part.source)))
        kept: list[Line] = []
        for line in reversed([*self._lines[: self._position], *self._split.parts[:index]]):
            if line.is_ours or line.binds & names or line.touches & names:
                kept.append(line)
                names |= line.uses | line.touches
        kept.reverse()
        return kept
