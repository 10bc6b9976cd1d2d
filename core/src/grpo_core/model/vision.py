"""A vision-language model's own processor: the tokens that an image becomes, and the tensors the model reads it from.

    bare ids, one placeholder an image → ids as the model sees them
    images → pixel tensors, once for each content

How many tokens an image becomes depends on its size alone, so it is asked once a size, of a blank image, and the first
prompt of a run is compared with what the processor makes of it as a whole.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from grpo_core.errors import DataError, Problem, RecipeError
from grpo_core.model.family import names_vision, reads_images
from grpo_core.model.gguf import is_gguf
from grpo_core.model.image_grid import bound_pixels, counts_pixels, grid_size, sizes_of
from grpo_core.model.json_files import model_json
from grpo_core.model.load import model_config
from grpo_core.model.pixels import digest, image_size, open_image
from grpo_core.model.processor import copy_processor, load_processor
from grpo_core.recipe.schema import ModelSettings
from grpo_core.types import ImageRef
from grpo_core.types.sample import image_count

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["PixelInputs", "Vision", "load_vision"]

KEPT_BYTES = 256 * 2**20
"""Of pixel tensors kept between their uses: in generation and in each pass of the update."""
BLANK_SIDE = 32
_TEXT_KEYS = frozenset({"input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids"})

_WRITTEN = (
    "Write <image> for each image; the model's own placeholder is not for texts. Where the chat template leaves images "
    "out, see model.chat_template."
)
_UNASKED = "The text has it itself, and the row has no image: write something else, or give the row its image column."


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelInputs:
    """The images of one prompt as the vision tower reads them; on the CPU."""

    tensors: Mapping[str, Tensor]
    """The arguments of the model's `get_image_features`, by name."""
    tokens: int
    """How many tokens of the prompt they fill."""
    token_id: int
    """Which token that is."""


def load_vision(model: ModelSettings) -> Vision | None:
    """The processor of a model; None for one that reads text only. Raises `RecipeError` when it has none that loads."""
    # Without the code that a model of text may bring: no more than its files are needed to tell.
    if is_gguf(model.path) or not names_vision(model_json(model, "config.json")):
        return None
    config = model_config(model)
    return Vision(model, config, load_processor(model)) if reads_images(config) else None


class Vision:
    """How a vision-language model reads images."""

    def __init__(self, model: ModelSettings, config: Any, processor: Any) -> None:
        self._model = model
        self._processor = processor
        bound_pixels(model, processor.image_processor)
        self._name = processor.image_processor.to_json_string() + type(processor).__name__
        self.image_token_id: int = config.image_token_id
        """The token that stands where the model puts what it sees; an image has many of them."""
        tokenizer = processor.tokenizer
        self._placeholder: str = processor.image_token
        self._placeholder_id: int = tokenizer.convert_tokens_to_ids(self._placeholder)
        sides = (getattr(config, f"vision_{side}_token_id", None) for side in ("start", "end"))
        before, after = ("" if side is None else tokenizer.convert_ids_to_tokens(side) for side in sides)
        self.placeholder = f"{before}{self._placeholder}{after}"
        """What stands for an image in a prompt's text, where the chat template has no way to write one."""
        others = (getattr(config, name, None) for name in ("video_token_id", "video_token_index"))
        self.reserved_ids = frozenset(
            token for token in (self.image_token_id, self._placeholder_id, *others) if isinstance(token, int)
        )
        """Tokens that stand for images and videos: no text may have them, and no completion."""
        self._by_size: dict[tuple[int, int], tuple[int, ...]] = {}

    @property
    def image_size(self) -> dict[str, int]:
        """What the processor bounds images by, in its own words, `model.max_pixels` considered."""
        return sizes_of(self._processor.image_processor)

    def require_places(self, bare_ids: Sequence[int], images: Sequence[ImageRef]) -> None:
        """Raise `DataError` unless the prompt has one placeholder for each image, and no other such token."""
        written = sum(token == self._placeholder_id for token in bare_ids)
        if written != len(images):
            raise DataError(
                f"its prompt has {written} of the model's placeholder {self._placeholder!r}, and the row has "
                f"{image_count(len(images))}",
                hint=_WRITTEN if images else _UNASKED,
            )
        for token in bare_ids:
            if token in self.reserved_ids and token != self._placeholder_id:
                shown = self._processor.tokenizer.convert_ids_to_tokens(token)
                raise DataError(f"its prompt has {shown!r}, which stands for images or videos", hint="Remove it.")

    def expand(self, bare_ids: Sequence[int], images: Sequence[ImageRef]) -> tuple[int, ...]:
        """[P] The prompt as the model sees it: in place of each placeholder all tokens of its image."""
        following = iter(images)
        return tuple(
            each
            for token in bare_ids
            for each in (self._tokens(next(following)) if token == self._placeholder_id else (token,))
        )

    def tokens_of(self, image: ImageRef) -> int:
        """How many visual tokens an image becomes."""
        return self._tokens(image).count(self.image_token_id)

    def require_same(self, text: str, images: Sequence[ImageRef], ids: Sequence[int]) -> None:
        """Raise `RecipeError` unless the processor makes the same tokens of a whole prompt, images included."""
        whole = self._call(text, [self.resized(image) for image in images])["input_ids"][0].tolist()
        if whole != list(ids):
            message = (
                f"{self._model.path}: its processor makes {len(whole)} tokens of a prompt with "
                f"{image_count(len(images))}, where its parts are {len(ids)} tokens; images of this model are not "
                "supported"
            )
            raise RecipeError([Problem(path="model.path", message=message)])

    def process(self, images: Sequence[ImageRef]) -> PixelInputs:
        """The images of one prompt; those of a content seen lately are not processed again. Raises `DataError` for one
        that is missing or broken."""
        key = (self._name, *map(digest, images))
        kept = _KEPT.get(key)
        if kept is None:
            found = self._call(self._placeholder * len(images), [self.resized(image) for image in images])
            kept = _KEPT.put(key, self._inputs(found))
        return kept

    def blank(self) -> PixelInputs:
        """A small image of nothing, for a forward that needs one only to be the same on all ranks."""
        return self._inputs(self._call(self._placeholder, [_blank(BLANK_SIDE, BLANK_SIDE)]))

    def resized(self, image: ImageRef) -> Image:
        """The image on the processor's own grid where that is known. Every engine is given this one, so that none
        resizes it in a way of its own: PIL's pixels and torchvision's differ."""
        opened, processor = open_image(image), self._processor.image_processor
        size = self._on_grid(opened.size)
        return opened if size == opened.size else opened.resize(size, resample=processor.resample)

    def save(self, directory: Path) -> None:
        """Copy the processor's files beside an exported model, as they were."""
        copy_processor(self._model, directory)

    def _inputs(self, found: Mapping[str, Tensor]) -> PixelInputs:
        return PixelInputs(
            tensors={name: value for name, value in found.items() if name not in _TEXT_KEYS},
            tokens=int((found["input_ids"] == self.image_token_id).sum()),
            token_id=self.image_token_id,
        )

    def _tokens(self, image: ImageRef) -> tuple[int, ...]:
        size = image_size(image)
        if size not in self._by_size:
            found = self._call(self._placeholder, [_blank(*self._on_grid(size))])
            self._by_size[size] = tuple(found["input_ids"][0].tolist())
        return self._by_size[size]

    def _on_grid(self, size: tuple[int, int]) -> tuple[int, int]:
        """Width and height that the processor leaves as they are; those of the image where its grid is not known."""
        processor = self._processor.image_processor
        if not counts_pixels(processor):
            return size
        low, high = processor.size["shortest_edge"], processor.size["longest_edge"]
        try:
            return grid_size(size, side=processor.patch_size * processor.merge_size, low=low, high=high)
        except ValueError as error:  # an aspect ratio that no grid fits
            width, height = size
            raise DataError(
                f"an image of {width} x {height} pixels cannot be processed for the model: {error}",
                hint="Leave it out, or cut it.",
            ) from error

    def _call(self, text: str, images: Sequence[Image]) -> Any:
        return self._processor(text=[text], images=[list(images)], add_special_tokens=False, return_tensors="pt")


class _Kept:
    """Pixel tensors by what they are of; the ones unused for longest go first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._inputs: OrderedDict[tuple[str, ...], PixelInputs] = OrderedDict()

    def get(self, key: tuple[str, ...]) -> PixelInputs | None:
        found = self._inputs.get(key)
        if found is not None:
            self._inputs.move_to_end(key)
        return found

    def put(self, key: tuple[str, ...], inputs: PixelInputs) -> PixelInputs:
        self._inputs[key] = inputs
        self._bytes += _bytes(inputs)
        while self._bytes > self._most_bytes and len(self._inputs) > 1:
            self._bytes -= _bytes(self._inputs.popitem(last=False)[1])
        return inputs


_KEPT = _Kept(KEPT_BYTES)
"""Shared by the rollout and the trainer of a process."""


def _bytes(inputs: PixelInputs) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in inputs.tensors.values())


def _blank(width: int, height: int) -> Image:
    import PIL.Image

    return PIL.Image.new("RGB", (width, height), (127, 127, 127))
