"""What stands in a scene: a solid of one shape, colour and material."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["COLOURS", "MATERIALS", "SHAPES", "Colour", "Kind", "Material", "Shape", "Solid"]

Shape = Literal["cube", "sphere", "cylinder"]
Colour = Literal["red", "green", "blue", "yellow", "gray", "brown", "purple", "cyan"]
Material = Literal["metal", "rubber"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
MATERIALS: tuple[Material, ...] = get_args(Material)
COLOURS: dict[Colour, tuple[int, int, int]] = {
    "red": (190, 45, 45),
    "green": (40, 130, 45),
    "blue": (45, 80, 205),
    "yellow": (235, 215, 50),
    "gray": (110, 112, 115),
    "brown": (133, 84, 40),
    "purple": (135, 50, 180),
    "cyan": (50, 205, 205),
}
"""In 8-bit RGB, in white light."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a question can ask for."""

    shape: Shape
    colour: Colour
    material: Material


@dataclass(frozen=True, slots=True, kw_only=True)
class Solid:
    """One solid of a scene. Lengths are shares of the picture's side."""

    kind: Kind
    x: float
    """Of its foot, from the left."""
    y: float
    """Of its foot, from the top: what is further down is nearer."""
    radius: float
    """As it appears, perspective included."""
    turn: int
    """Of a cube: how many sixths of a quarter turn it stands turned."""
