"""A counting question, its exact answer, and what the scene has to show for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from grpo_datasets_vision.scenes.solid import COLOURS, MATERIALS, SHAPES, Kind

__all__ = ["Problem", "Question", "draw_problem"]

Question = Literal["all", "colour", "shape", "material", "both"]
"""What is counted: all objects, those of a colour, of a shape, of a material, or of a colour and a shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A question about a scene."""

    question: str
    answer: int
    """How many of the kinds it is about."""
    kinds: tuple[Kind, ...]
    """What the scene shows, in any order."""


def draw_problem(random: Random, question: Question, *, low: int, high: int, most: int) -> Problem:
    """Draw a problem whose answer is any number from `low` to `high` with the same probability; a scene that is asked
    about a part shows up to `most` objects."""
    answer = random.randint(low, high)
    if question == "all":
        kinds = tuple(_kind(random) for _ in range(answer))
        return Problem(question="How many objects are there?", answer=answer, kinds=kinds)
    asked = _kind(random)
    name, is_meant = _asked(question, asked)
    wanted = [_like(random, asked, question) for _ in range(answer)]
    others = [_other(random, is_meant) for _ in range(random.randint(0, max(0, most - answer)))]
    shown = [*wanted, *others]
    random.shuffle(shown)
    return Problem(question=f"How many {name} are there?", answer=answer, kinds=tuple(shown))


def _kind(random: Random) -> Kind:
    return Kind(shape=random.choice(SHAPES), colour=random.choice(tuple(COLOURS)), material=random.choice(MATERIALS))


def _asked(question: Question, asked: Kind) -> tuple[str, Callable[[Kind], bool]]:
    """What the question calls the objects, and which these are."""
    if question == "colour":
        return f"{asked.colour} objects", lambda kind: kind.colour == asked.colour
    if question == "shape":
        return f"{asked.shape}s", lambda kind: kind.shape == asked.shape
    if question == "material":
        return f"{asked.material} objects", lambda kind: kind.material == asked.material
    return f"{asked.colour} {asked.shape}s", lambda kind: (kind.colour, kind.shape) == (asked.colour, asked.shape)


def _like(random: Random, asked: Kind, question: Question) -> Kind:
    """Something that the question means, and any else of it drawn anew."""
    drawn = _kind(random)
    return Kind(
        shape=asked.shape if question in ("shape", "both") else drawn.shape,
        colour=asked.colour if question in ("colour", "both") else drawn.colour,
        material=asked.material if question == "material" else drawn.material,
    )


def _other(random: Random, is_meant: Callable[[Kind], bool]) -> Kind:
    while is_meant(kind := _kind(random)):
        pass
    return kind
