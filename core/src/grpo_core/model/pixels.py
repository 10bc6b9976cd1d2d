"""Opens images, wherever an `ImageRef` says that they are."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import DataError
from grpo_core.types import ImageRef

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["digest", "image_size", "open_image"]


def open_image(image: ImageRef) -> Image:
    """The image in RGB. Raises `DataError` that names it when it is missing or broken."""
    return _opened(image).convert("RGB")


def image_size(image: ImageRef) -> tuple[int, int]:
    """Width and height in pixels."""
    width, height = _opened(image).size
    return width, height


def digest(image: ImageRef) -> str:
    """SHA-256 of the file's content, in hexadecimal."""
    return hashlib.sha256(_content(image)).hexdigest()


def _opened(image: ImageRef) -> Image:
    import PIL.Image

    try:
        return PIL.Image.open(io.BytesIO(_content(image)))
    except OSError as error:
        raise DataError(f"the image {_name(image)} cannot be opened: {error}") from error


def _content(image: ImageRef) -> bytes:
    if isinstance(image.source, bytes):
        return image.source
    try:
        return Path(image.source).read_bytes()
    except OSError as error:
        raise DataError(f"the image {_name(image)} cannot be read: {error.strerror}") from error


def _name(image: ImageRef) -> str:
    return f"of {len(image.source)} bytes" if isinstance(image.source, bytes) else image.source
