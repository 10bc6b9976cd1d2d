"""A vision-language model's own processor: the tokens that an image becomes, and the tensors the model reads it from.

    bare ids, one placeholder an image → ids as the model sees them
    images → pixel tensors, once for each content

It works without torchvision too: transformers has image processors on PIL, and a processor's part for videos, which
needs torchvision, is left out. How many tokens an image becomes depends on its size alone, so it is asked once a size,
of a blank image, and the first prompt of a run is compared with what the processor makes of it as a whole.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import transformers
from torch import Tensor
from transformers.utils import cached_file

from grpo_core.errors import DataError, Problem, RecipeError
from grpo_core.model.family import names_vision, reads_images
from grpo_core.model.gguf import is_gguf
from grpo_core.model.json_files import model_json
from grpo_core.model.load import model_config
from grpo_core.model.pixels import digest, image_size, open_image
from grpo_core.recipe.schema import ModelSettings
from grpo_core.types import ImageRef

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["PixelInputs", "Vision", "load_vision"]

PROCESSOR_FILES = (
    *("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json"),
    *("chat_template.json", "chat_template.jinja"),
)
KEPT_BYTES = 256 * 2**20
"""Of pixel tensors kept between their uses: in generation and in each pass of the update."""
BLANK_SIDE = 32
MOST_BENT = 0.1
"""By how much the aspect ratio of an image may change."""
_TEXT_KEYS = frozenset({"input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids"})
_REASON_WIDTH = 240


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
    return Vision(model, config, _load_processor(model)) if reads_images(config) else None


class Vision:
    """How a vision-language model reads images."""

    def __init__(self, model: ModelSettings, config: Any, processor: Any) -> None:
        self._model = model
        self._processor = processor
        _bound_pixels(model, processor.image_processor)
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
        return {name: value for name, value in dict(self._processor.image_processor.size).items() if value is not None}

    def require_places(self, bare_ids: Sequence[int], images: Sequence[ImageRef]) -> None:
        """Raise `DataError` unless the prompt has one placeholder for each image, and no other such token."""
        written = sum(token == self._placeholder_id for token in bare_ids)
        if written != len(images):
            raise DataError(
                f"its prompt has {written} of the model's placeholder {self._placeholder!r}, and the row has "
                f"{len(images)} images",
                hint="Write <image> for each image; the model's own placeholder is not for texts. Where the chat "
                "template leaves images out, see model.chat_template.",
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
            _fail(
                self._model,
                f"its processor makes {len(whole)} tokens of a prompt with {len(images)} images, where its parts are "
                f"{len(ids)} tokens; images of this model are not supported",
            )

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
        for name in PROCESSOR_FILES:
            file = _file_of(self._model, name)
            if file is not None:
                shutil.copyfile(file, directory / name)

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
        if not _counts_pixels(processor):
            return size
        low, high = processor.size["shortest_edge"], processor.size["longest_edge"]
        try:
            return _grid_size(size, side=processor.patch_size * processor.merge_size, low=low, high=high)
        except ValueError as error:  # an aspect ratio that no grid fits
            width, height = size
            raise DataError(
                f"an image of {width} x {height} pixels cannot be processed for the model: {_reason(error)}",
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


def _grid_size(size: tuple[int, int], *, side: int, low: int, high: int) -> tuple[int, int]:
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


def _blank(width: int, height: int) -> Image:
    import PIL.Image

    return PIL.Image.new("RGB", (width, height), (127, 127, 127))


def _counts_pixels(image_processor: Any) -> bool:
    """Whether the bounds of its `size` are numbers of pixels, as in Qwen's family, and not lengths of edges."""
    return hasattr(image_processor, "merge_size") and _edges(image_processor) == {"shortest_edge", "longest_edge"}


def _edges(image_processor: Any) -> set[str]:
    return {name for name, value in dict(image_processor.size).items() if value is not None}


def _bound_pixels(model: ModelSettings, image_processor: Any) -> None:
    """Set what bounds the size of an image to `model.max_pixels`."""
    most = model.max_pixels
    if most is None:
        return
    size = {name: value for name, value in dict(image_processor.size).items() if value is not None}
    if _counts_pixels(image_processor):
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


def _load_processor(model: ModelSettings) -> Any:
    where: dict[str, Any] = {
        "pretrained_model_name_or_path": model.path,
        "revision": None if os.path.isdir(model.path) else model.revision,
        "local_files_only": os.path.isdir(model.path),
    }
    try:
        made = _processor_class(model)
        loaded = made.from_pretrained(trust_remote_code=model.trust_remote_code, **where)
    except RecipeError:
        raise
    except Exception as error:  # noqa: BLE001 - each family has its own way to refuse a file or to miss a library
        _fail(model, _missing_library(error) or f"its image processor cannot be loaded: {_reason(error)}")
    if not isinstance(getattr(loaded, "image_token", None), str) or not hasattr(loaded, "image_processor"):
        _fail(model, f"its processor is a {type(loaded).__name__}, which has no placeholder for images")
    return loaded


def _processor_class(model: ModelSettings) -> Any:
    name = next(
        (
            content["processor_class"]
            for file in ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
            if isinstance((content := model_json(model, file)).get("processor_class"), str)
        ),
        None,
    )
    if name is None:
        return transformers.AutoProcessor
    found = getattr(transformers, name, None)
    if found is None:
        _fail(model, f"transformers {transformers.__version__} has no processor {name!r}, which the model's files name")
    return _without_video(found)


def _without_video(processor_class: Any) -> Any:
    """The class able to load without its video processor, all of which need torchvision."""
    names = list(processor_class.get_attributes())
    if "video_processor" not in names:
        return processor_class
    place = names.index("video_processor")

    class WithoutVideo(processor_class):  # type: ignore[misc]  # a class that the model's files name
        video_processor = None

        @classmethod
        def get_attributes(cls) -> list[str]:
            return [name for name in names if name != "video_processor"]

        @classmethod
        def from_args_and_dict(cls, args: Any, processor_dict: Any, **kwargs: Any) -> Any:
            return super().from_args_and_dict([*args[:place], None, *args[place:]], processor_dict, **kwargs)

    WithoutVideo.__name__ = processor_class.__name__
    return WithoutVideo


def _missing_library(error: Exception) -> str | None:
    """What to install, where a family's processor asks for a package that is not here."""
    if not isinstance(error, ImportError):
        return None
    named = re.search(r"pip install ([\w.\-]+)", str(error))
    wanted = named.group(1) if named else (getattr(error, "name", None) or None)
    return None if wanted is None else f"its processor needs the package {wanted}: pip install {wanted}"


def _file_of(model: ModelSettings, name: str) -> str | None:
    found: str | None = cached_file(
        model.path,
        name,
        revision=None if os.path.isdir(model.path) else model.revision,
        local_files_only=True,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return found


def _reason(error: Exception) -> str:
    return textwrap.shorten(str(error), _REASON_WIDTH, placeholder=" …") or type(error).__name__


def _fail(model: ModelSettings, message: str) -> NoReturn:
    raise RecipeError([Problem(path="model.path", message=f"{model.path}: {message}")]) from None
