"""Where the solids of a scene stand: at random, none before another, the far ones smaller."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from grpo_datasets_vision.scenes.solid import Kind, Solid

__all__ = ["TURNS", "place"]

TURNS = 6
_RADII = (0.088, 0.074)
"""Of large and small ones, halfway down the picture."""
_PERSPECTIVE = 0.2
"""How much larger the nearest is than the farthest."""
_FAR, _NEAR = 0.22, 0.92
_APART = (1.12, 1.05)
"""How far feet must be from each other, in radii, across and in depth."""
_TRIES, _STARTS = 60, 500


def place(random: Random, kinds: Sequence[Kind]) -> tuple[Solid, ...]:
    """Stand them up, far ones first; raises `ValueError` when there is no room for so many."""
    for _ in range(_STARTS):
        placed: list[Solid] = []
        for kind in kinds:
            solid = _free_place(random, kind, placed)
            if solid is None:
                break
            placed.append(solid)
        else:
            return tuple(sorted(placed, key=lambda solid: solid.y))
    raise ValueError(f"there is no room for {len(kinds)} objects in a scene")


def _free_place(random: Random, kind: Kind, placed: Sequence[Solid]) -> Solid | None:
    for _ in range(_TRIES):
        y = random.uniform(_FAR, _NEAR)
        radius = random.choice(_RADII) * (1 + _PERSPECTIVE * (y - 0.5) - 0.04)
        x = random.uniform(1.3 * radius, 1 - 1.3 * radius)
        if all(_distance(x, y, radius, other) > 1 for other in placed):
            return Solid(kind=kind, x=x, y=y, radius=radius, turn=random.randrange(TURNS))
    return None


def _distance(x: float, y: float, radius: float, other: Solid) -> float:
    """1 where the two just touch."""
    across, deep = _APART
    both = radius + other.radius
    return math.hypot((x - other.x) / (across * both), (y - other.y) / (deep * both))
