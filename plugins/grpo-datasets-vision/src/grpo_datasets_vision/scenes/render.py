"""A picture of a scene: ground, shadows, then the solids from far to near; drawn at twice its size and scaled down."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PIL import Image

from grpo_datasets_vision.scenes.solid import Solid
from grpo_datasets_vision.scenes.sprite import FOOT, shadow, sprite

__all__ = ["GROUND_SHADES", "render"]

GROUND_SHADES = (-8, 0, 8)
"""How bright the ground may be, in steps of 8-bit grey."""
_OVERSAMPLING = 2
_SHADOW_COLOUR = (38, 38, 42)


def render(solids: Sequence[Solid], *, pixels: int, shade: int = 0) -> Image.Image:
    """Draw a scene as RGB of `pixels` by `pixels`; `shade` is added to the ground."""
    side = pixels * _OVERSAMPLING
    picture = _ground(side, shade).copy()
    radii = [max(2, round(solid.radius * side)) for solid in solids]
    for solid, radius in zip(solids, radii, strict=True):
        mask = shadow(radius)
        across = solid.x * side - mask.width / 2 + 0.35 * radius
        down = solid.y * side - mask.height / 2 - 0.25 * radius
        picture.paste(_SHADOW_COLOUR, (round(across), round(down)), mask)
    for solid, radius in zip(solids, radii, strict=True):
        drawn = sprite(solid.kind, radius, solid.turn if solid.kind.shape == "cube" else 0)
        across, down = solid.x * side - drawn.width / 2, solid.y * side - drawn.height + FOOT * radius
        picture.paste(drawn, (round(across), round(down)), drawn)
    return picture.resize((pixels, pixels), Image.Resampling.LANCZOS)


@lru_cache(maxsize=8)
def _ground(side: int, shade: int) -> Image.Image:
    """Lighter towards the front, darker towards the corners."""
    down, across = np.mgrid[0:side, 0:side].astype(np.float32) / side
    grey = 150 + 55 * np.clip(down * 1.3, 0, 1) - 40 * ((across - 0.5) ** 2 + (down - 0.55) ** 2) + shade
    return Image.fromarray(np.repeat(np.clip(grey, 0, 255)[..., None], 3, 2).astype(np.uint8), "RGB")
