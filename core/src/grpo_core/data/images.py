"""Images of a row: where they are, and which `<image>` of the text each one stands for. Nothing is decoded."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grpo_core.errors import DataError
from grpo_core.types import ImageRef, Message
from grpo_core.types.sample import PLACEHOLDER, image_count

__all__ = ["PLACEHOLDER", "image_refs", "locate", "place_images"]

_LONGEST_PATH = 1024
_MODES_OF_PNG = frozenset({"1", "L", "LA", "I;16", "P", "RGB", "RGBA"})
_URL = re.compile(r"(?:https?|ftp|s3|gs|oss)://", re.IGNORECASE)
_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)
_BASE64_STARTS = ("iVBORw0KGgo", "/9j/", "UklGR", "R0lGOD", "Qk", "SUkqA", "TU0AK")
"""How base64 of PNG, JPEG, WebP, GIF, BMP and TIFF begins."""
_SHORTEST_BASE64 = 60


def image_refs(value: object, *, column: str) -> tuple[ImageRef, ...]:
    """The images of a cell: a path, the encoded bytes, base64 of them (bare, or a data URL), the `{bytes, path}` of hub
    datasets, a decoded image, or a list of these; None, an empty text and an empty list are no images."""
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(image for item in value for image in image_refs(item, column=column))
    if isinstance(value, Mapping):
        found = next((value[key] for key in ("bytes", "path", "url", "image") if value.get(key) is not None), None)
        if found is not None:
            return image_refs(found, column=column)
    if isinstance(value, bytes) and value:
        return (ImageRef(source=value),)
    if isinstance(value, str):
        return (_from_text(value.strip(), column),) if value.strip() else ()
    if hasattr(value, "save") and hasattr(value, "getexif"):  # a PIL image, known without importing PIL
        return (ImageRef(source=_encoded(value)),)
    raise DataError(
        f"column {column}: {_short(value)} is not an image",
        hint="Give a path, the encoded bytes, or a list of these; None for no image.",
    )


def _encoded(image: Any) -> bytes:
    """A decoded image as a file, nothing of it lost: PNG knows neither print colours nor fractions."""
    file = io.BytesIO()
    image.save(file, format="PNG" if image.mode in _MODES_OF_PNG else "TIFF", exif=image.getexif())
    return file.getvalue()


def _from_text(text: str, column: str) -> ImageRef:
    if _URL.match(text):
        raise DataError(
            f"column {column}: {_short(text)} is an address, and images are not fetched while a run is prepared",
            hint="Download the images, and give their paths.",
        )
    data_url = _DATA_URL.match(text)
    encoded = text[data_url.end() :] if data_url else text
    if data_url or (len(text) >= _SHORTEST_BASE64 and text.startswith(_BASE64_STARTS)):
        try:
            return ImageRef(source=base64.b64decode("".join(encoded.split()), validate=True))
        except (binascii.Error, ValueError) as error:
            if data_url:
                raise DataError(f"column {column}: {_short(text)} is no valid base64: {error}") from error
    return ImageRef(source=text)


def locate(image: ImageRef, folder: Path | None) -> ImageRef:
    """The image with a relative path made absolute where the file lies beside the data, in `folder`."""
    source = image.source
    if folder is None or isinstance(source, bytes) or len(source) > _LONGEST_PATH or "\0" in source:
        return image
    beside = folder / source
    return ImageRef(source=str(beside.absolute())) if beside.is_file() else image


def place_images(
    messages: Sequence[Message], images: Sequence[ImageRef], *, has_column: bool = True
) -> tuple[Message, ...]:
    """The messages with one `<image>` for each image: as written, or all at the start of the first user turn when the
    text has none. Raises `DataError` when some are written and their number differs; in rows without images and
    without a column for them the word is text."""
    written = sum(message.content.count(PLACEHOLDER) for message in messages)
    if written == len(images) or not (images or has_column):
        return tuple(messages)
    if written:
        raise DataError(f"the prompt has {written} {PLACEHOLDER}, but the row has {image_count(len(images))}")
    first = next(index for index, message in enumerate(messages) if message.role == "user")
    opened = replace(messages[first], content=PLACEHOLDER * len(images) + messages[first].content)
    return (*messages[:first], opened, *messages[first + 1 :])


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
