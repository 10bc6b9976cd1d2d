"""Images of a row: where they are, and which `<image>` of the text each one stands for. Nothing is decoded."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grpo_core.errors import DataError
from grpo_core.types import ImageRef, Message
from grpo_core.types.sample import PLACEHOLDER

__all__ = ["PLACEHOLDER", "image_refs", "locate", "place_images"]

_LONGEST_PATH = 1024


def image_refs(value: object, *, column: str) -> tuple[ImageRef, ...]:
    """The images of a cell: a path, the encoded bytes, the `{bytes, path}` of hub datasets, a decoded image, or a list
    of these; None and an empty list are no images."""
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(image for item in value for image in image_refs(item, column=column))
    if isinstance(value, Mapping):
        found = next((value[key] for key in ("bytes", "path", "url", "image") if value.get(key) is not None), None)
        if found is not None:
            return image_refs(found, column=column)
    if isinstance(value, str | bytes) and value:
        return (ImageRef(source=value),)
    if hasattr(value, "save") and hasattr(value, "size"):  # a PIL image, known without importing PIL
        encoded = io.BytesIO()
        value.save(encoded, format="PNG")
        return (ImageRef(source=encoded.getvalue()),)
    raise DataError(
        f"column {column}: {_short(value)} is not an image",
        hint="Give a path, the encoded bytes, or a list of these; None for no image.",
    )


def locate(image: ImageRef, folder: Path | None) -> ImageRef:
    """The image with a relative path made absolute where the file lies beside the data, in `folder`."""
    source = image.source
    if folder is None or isinstance(source, bytes) or len(source) > _LONGEST_PATH or "\0" in source:
        return image
    beside = folder / source
    return ImageRef(source=str(beside.absolute())) if beside.is_file() else image


def place_images(messages: Sequence[Message], images: Sequence[ImageRef]) -> tuple[Message, ...]:
    """The messages with one `<image>` for each image: as written, or all at the start of the first user turn when the
    text has none. Raises `DataError` when some are written and their number differs."""
    written = sum(message.content.count(PLACEHOLDER) for message in messages)
    if not images or written == len(images):
        return tuple(messages)
    if written:
        raise DataError(f"the prompt has {written} {PLACEHOLDER}, but the row has {len(images)} images")
    first = next(index for index, message in enumerate(messages) if message.role == "user")
    opened = replace(messages[first], content=PLACEHOLDER * len(images) + messages[first].content)
    return (*messages[:first], opened, *messages[first + 1 :])


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
