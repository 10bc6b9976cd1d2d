"""How large a model reads an image: the grid of its processor's cells, and the bound of `model.max_pixels`."""

from __future__ import annotations

from typing import Any, NoReturn

from grpo_core.errors import Problem, RecipeError
from grpo_core.recipe.schema import ModelSettings

__all__ = ["bound_pixels", "counts_pixels", "grid_size", "sizes_of"]

MOST_BENT = 0.1
"""By how much the aspect ratio of an image may change."""


def grid_size(size: tuple[int, int], *, side: int, low: int, high: int) -> tuple[int, int]:
    """Width and height of an image in whole cells of `side` pixels and with an area between the bounds, as Qwen's
    processor chooses them; but where that bends a small image out of shape, the smallest size that does not."""
    # Here, as it needs Pillow and takes seconds to import, which models of text do without.
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    width, height = size
    chosen_height, chosen_width = smart_resize(height, width, factor=side, min_pixels=low, max_pixels=high)
    is_small = width * height < low or min(size) < side
    if not is_small or _bent(chosen_width / chosen_height, width / height) <= MOST_BENT:
        return chosen_width, chosen_height
    for cells in range(1, high // side**2 + 1):  # of the shorter side
        longer = max(1, round(cells * max(size) / min(size)))
        area = cells * longer * side**2
        if area > high:
            break
        if area >= low and _bent(longer / cells, max(size) / min(size)) <= MOST_BENT:
            shorter = cells * side
            return (longer * side, shorter) if width >= height else (shorter, longer * side)
    return chosen_width, chosen_height


def _bent(ratio: float, wanted: float) -> float:
    """By which share an aspect ratio is off."""
    return max(ratio, wanted) / min(ratio, wanted) - 1


def counts_pixels(image_processor: Any) -> bool:
    """Whether the bounds of its `size` are numbers of pixels, as in Qwen's family, and not lengths of edges."""
    return hasattr(image_processor, "merge_size") and set(sizes_of(image_processor)) == {
        "shortest_edge",
        "longest_edge",
    }


def sizes_of(image_processor: Any) -> dict[str, int]:
    """What a processor bounds images by, in its own words."""
    return {name: value for name, value in dict(image_processor.size).items() if value is not None}


def bound_pixels(model: ModelSettings, image_processor: Any) -> None:
    """Set what bounds the size of an image to `model.max_pixels`."""
    most = model.max_pixels
    if most is None:
        return
    size = sizes_of(image_processor)
    if counts_pixels(image_processor):
        if most < size["shortest_edge"]:
            _fail_pixels(most, f"the model's images have at least {size['shortest_edge']} pixels")
        size["longest_edge"] = min(size["longest_edge"], most)
    elif set(size) == {"longest_edge"}:  # images are scaled to it, and cut into tiles
        tile = dict(getattr(image_processor, "max_image_size", None) or {}).get("longest_edge") or 1
        if tile * tile > most:
            _fail_pixels(most, f"the model reads images in tiles of {tile} x {tile} pixels")
        size["longest_edge"] = min(size["longest_edge"], int(most**0.5) // tile * tile)
    elif {"height", "width"} <= set(size) and size["height"] * size["width"] > most:
        _fail_pixels(most, f"the model reads every image at {size['width']} x {size['height']} pixels")
    image_processor.size = size


def _fail_pixels(most: int, reason: str) -> NoReturn:
    raise RecipeError([Problem(path="model.max_pixels", message=f"{most} is too few: {reason}")])
