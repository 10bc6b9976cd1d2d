"""A function to write: a few steps one after the other, with the reference program that takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from grpo_rewards_code.basics.operations import OPERATIONS, Operation, Type
from grpo_rewards_code.basics.options import Kind

__all__ = ["FUNCTION_NAME", "INPUT_TYPES", "Function", "Step", "draw_function", "program", "run", "trace"]

FUNCTION_NAME = "f"
INPUT_TYPES: Mapping[Kind, Type] = {"list": "list", "string": "string", "arithmetic": "number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An operation with its number."""

    operation: Operation
    n: int | None = None

    @property
    def words(self) -> str:
        """The instruction."""
        return self.operation.words.replace("{n}", str(self.n))

    @property
    def code(self) -> str:
        """The Python expression of `x`."""
        return self.operation.code.replace("{n}", str(self.n))


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """What is to be written."""

    kind: Kind
    """What it takes."""
    steps: tuple[Step, ...]
    """What it does, in order."""

    @property
    def expressions(self) -> list[str]:
        """Its steps as Python."""
        return [step.code for step in self.steps]


def draw_function(random: Random, kind: Kind, steps: int) -> Function | None:
    """A random function of so many steps; None: the steps drawn led to a value that nothing more can be done with."""
    value: Type = INPUT_TYPES[kind]
    taken: list[Step] = []
    while len(taken) < steps:
        possible = [operation for operation in OPERATIONS if operation.takes == value]
        if not possible:
            return None
        operation = possible[random.randrange(len(possible))]
        taken.append(Step(operation=operation, n=random.randint(*operation.numbers) if operation.numbers else None))
        value = operation.gives
    return Function(kind=kind, steps=tuple(taken))


def program(expressions: Sequence[str]) -> str:
    """The Python source of a function that sets `x` to one expression after the other and returns it."""
    lines = [f"    x = {expression}" for expression in expressions]
    return "\n".join([f"def {FUNCTION_NAME}(x):", *lines, "    return x"])


def run(source: str, arguments: Sequence[Any]) -> list[Any]:
    """What a reference program returns for each argument. It is our own text, made of `OPERATIONS`: a model's program
    never comes here."""
    names: dict[str, Any] = {}
    exec(compile(source, "<code_basics>", "exec"), names)  # noqa: S102
    return [names[FUNCTION_NAME](argument) for argument in arguments]


def trace(expressions: Sequence[str], arguments: Sequence[Any]) -> list[Any]:
    """The same results, expression by expression: each is compiled once in a process, which makes drawing fast."""
    values = list(arguments)
    for step in map(_compiled, expressions):
        values = [step(value) for value in values]
    return values


@cache
def _compiled(expression: str) -> Callable[[Any], Any]:
    names: dict[str, Any] = {}
    exec(compile(f"step = lambda x: {expression}", "<code_basics>", "exec"), names)  # noqa: S102
    step: Callable[[Any], Any] = names["step"]
    return step
