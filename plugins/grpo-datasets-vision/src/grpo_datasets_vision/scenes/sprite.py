"""A picture of one solid: its form shaded by one lamp from the upper left, glossy where it is metal.

Shapes: N pixels of the picture's side.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from grpo_datasets_vision.scenes.layout import TURNS
from grpo_datasets_vision.scenes.solid import COLOURS, Kind

__all__ = ["FOOT", "shadow", "sprite"]

Array = npt.NDArray[np.floating[Any]]

FOOT = 0.45
"""How far above the lower edge of its picture a solid stands, in radii."""
_LAMP = (-0.5, -0.62, 0.6)
_HALFWAY = (-0.28, -0.35, 0.89)
"""Between the lamp and the eye: where a gloss is."""
_CUBE_START = 0.12


@lru_cache(maxsize=4096)
def sprite(kind: Kind, radius: int, turn: int) -> Image.Image:
    """RGBA of a solid whose radius is so many pixels; its foot is in the middle, `FOOT` radii above the lower edge."""
    draw = {"sphere": _sphere, "cylinder": _cylinder, "cube": _cube}[kind.shape]
    return draw(kind, radius, turn)


@lru_cache(maxsize=256)
def shadow(radius: int) -> Image.Image:
    """The mask of a soft shadow on the ground, a little to the right."""
    side = 4 * radius + 4
    middle = side / 2
    mask = Image.new("L", (side, side))
    edges = (middle - 1.15 * radius, middle - 0.42 * radius, middle + 1.35 * radius, middle + 0.48 * radius)
    ImageDraw.Draw(mask).ellipse(edges, fill=125)
    core = (middle - 0.85 * radius, middle - 0.28 * radius, middle + 0.95 * radius, middle + 0.34 * radius)
    ImageDraw.Draw(mask).ellipse(core, fill=165)
    return mask.filter(ImageFilter.GaussianBlur(radius * 0.2))


def _canvas(radius: int) -> tuple[Array, Array, float, float]:
    """[N, N] Across and down from the left upper corner; where the middle and the foot are."""
    side = int(2.9 * radius) + 4
    down_NN, across_NN = np.mgrid[0:side, 0:side].astype(np.float32)
    return across_NN, down_NN, side / 2, side - FOOT * radius - 2


def _picture(kind: Kind, light_NN: Array, gloss_NN: Array, opaque_NN: Array) -> Image.Image:
    colour = np.asarray(COLOURS[kind.colour], np.float32)
    rgb_NN3 = np.clip(light_NN[..., None] * colour + 255.0 * gloss_NN[..., None], 0, 255)
    rgba_NN4 = np.concatenate([rgb_NN3, 255.0 * np.clip(opaque_NN, 0, 1)[..., None]], axis=-1)
    return Image.fromarray(rgba_NN4.astype(np.uint8), "RGBA")


def _sphere(kind: Kind, radius: int, turn: int) -> Image.Image:
    across, down, middle, foot = _canvas(radius)
    x, y = (across - middle) / radius, (down - foot + radius * 0.72) / radius
    from_middle = x * x + y * y
    z = np.sqrt(np.clip(1 - from_middle, 0, 1))
    facing = np.clip(x * _LAMP[0] + y * _LAMP[1] + z * _LAMP[2], 0, 1)
    towards = np.clip(x * _HALFWAY[0] + y * _HALFWAY[1] + z * _HALFWAY[2], 0, 1)
    is_metal = kind.material == "metal"
    gloss = 0.75 * towards**60 if is_metal else 0.3 * towards**22
    light = 0.22 + 0.9 * facing**1.4 if is_metal else 0.3 + 0.78 * facing
    if is_metal:  # the ground and the sky mirror in it
        light = light + 0.16 * np.clip(-y - 0.2, 0, 1) - 0.1 * np.exp(-((y - 0.25) ** 2) / 0.01)
    light = light * (1 - 0.25 * np.clip(y, 0, 1))
    return _picture(kind, light, gloss, (1 - np.sqrt(from_middle)) * radius + 0.5)


def _cylinder(kind: Kind, radius: int, turn: int) -> Image.Image:
    across, down, middle, foot = _canvas(radius)
    width, lid = radius * 0.88, radius * 0.34
    top, bottom = foot - radius * 1.45, foot - lid * 0.55
    x = (across - middle) / width
    z = np.sqrt(np.clip(1 - x * x, 0, 1))
    facing = np.clip(x * -0.62 + z * 0.72, 0, 1)
    is_metal = kind.material == "metal"
    gloss = (0.6 if is_metal else 0.12) * np.clip(1 - np.abs(x + 0.38) * (5 if is_metal else 3), 0, 1) ** 2
    light = 0.34 + 0.66 * facing
    if is_metal:
        gloss = gloss + 0.12 * np.clip(1 - np.abs(x - 0.62) * 6, 0, 1) ** 2
    opaque = np.minimum(
        np.clip((1 - np.abs(x)) * width + 0.5, 0, 1),
        np.minimum(np.clip(down - top + 0.5, 0, 1), np.clip(bottom + lid * z - down + 0.5, 0, 1)),
    )
    on_lid = np.clip((1 - np.sqrt(x * x + ((down - top) / lid) ** 2)) * lid + 0.5, 0, 1)
    light = light * (1 - on_lid) + on_lid * (1.12 + 0.08 * x * -1)
    gloss = gloss * (1 - on_lid) + on_lid * (0.1 if is_metal else 0.05)
    return _picture(kind, light, gloss, np.maximum(opaque, on_lid))


def _cube(kind: Kind, radius: int, turn: int) -> Image.Image:
    _, _, middle, foot = _canvas(radius)
    side = int(2.9 * radius) + 4
    half, height = radius * 1.02, radius * 1.22
    angle = math.pi / 2 * turn / TURNS + _CUBE_START
    corners = [
        (
            middle + half * math.cos(angle + corner * math.pi / 2),
            foot - radius * 0.30 + 0.42 * half * math.sin(angle + corner * math.pi / 2),
        )
        for corner in range(4)
    ]
    raised = [(x, y - height) for x, y in corners]
    picture = Image.new("RGBA", (side, side))
    is_metal = kind.material == "metal"
    for corner in range(4):
        following = (corner + 1) % 4
        facing = angle + corner * math.pi / 2 + math.pi / 4
        if math.sin(facing) > 0:  # towards the eye
            face = (corners[corner], corners[following], raised[following], raised[corner])
            light = 0.62 - 0.34 * math.cos(facing)
            _paint(picture, face, kind, (light + 0.12, light - 0.1), is_metal)
    _paint(picture, tuple(raised), kind, (1.2, 1.1), is_metal)
    return picture


def _paint(
    picture: Image.Image,
    face: tuple[tuple[float, float], ...],
    kind: Kind,
    light: tuple[float, float],
    is_metal: bool,
) -> None:
    """Fill a face, from the light at its upper edge to that at its lower one; on metal with a streak of gloss."""
    side = picture.width
    mask = Image.new("L", picture.size)
    ImageDraw.Draw(mask).polygon(face, fill=255)
    top, bottom = min(y for _, y in face), max(y for _, y in face)
    down = np.clip((np.arange(side, dtype=np.float32) - top) / max(bottom - top, 1), 0, 1)
    light_N1 = (light[0] + (light[1] - light[0]) * down)[:, None]
    across = np.arange(side, dtype=np.float32)[None, :] / side
    streak = 0.2 * np.exp(-((across + 0.35 * down[:, None] - 0.55) ** 2) / 0.003) if is_metal else across * 0
    light_NN = np.broadcast_to(light_N1, (side, side)).astype(np.float32)
    gloss_NN = np.broadcast_to(streak, (side, side)).astype(np.float32)
    painted = _picture(kind, light_NN, gloss_NN, np.ones_like(light_NN))
    picture.paste(painted, (0, 0), mask)
