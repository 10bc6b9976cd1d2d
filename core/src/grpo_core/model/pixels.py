"""Opens images, wherever an `ImageRef` says that they are, and makes RGB of every kind of them in one way.

What processors of models would do, each differently: turn the picture as its EXIF data say, scale 16 bits down instead
of cutting them off, put transparent pixels on white. A file is data that anyone may have made, so only formats of
pictures are read (none that runs a program, as PostScript does), and none whose header asks for a vast memory.
"""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from grpo_core.errors import DataError
from grpo_core.regular_files import open_file, read_bytes, shown
from grpo_core.types import ImageRef

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["MOST_PIXELS", "digest", "image_name", "image_size", "open_image", "require_image", "thumbnail"]

MOST_PIXELS = 2**26
"""Of an image: 67 million, a few times what cameras take; more is taken for a decompression bomb."""
_MOST_BYTES = 2**28
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF", "ICO")
_ORIENTATION = 0x0112
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
"""EXIF orientation -> Pillow's `Transpose` that undoes it."""
_TURNED = frozenset({5, 6, 7, 8})
"""Orientations that exchange width and height."""
_DEEP = ("I;16", "I;16L", "I;16B", "I;16N", "I")
_STEPS_OF_16_BITS = 257
"""65535 / 255."""
_THUMBNAIL_SIDE = 320
_THUMBNAIL_BYTES = 20_000
_QUALITIES = (82, 65, 45, 25)


def open_image(image: ImageRef) -> Image:
    """The image in RGB. Raises `DataError` that names it when it is missing, broken or no picture."""
    with _opened(image) as opened:
        orientation = _orientation(opened)
        opened.load()
        rgb = _rgb(opened)
        return rgb.transpose(_pillow().Transpose(_TURNS[orientation])) if orientation in _TURNS else rgb


def image_size(image: ImageRef) -> tuple[int, int]:
    """Width and height in pixels as the picture is to be seen, read from the file's header alone; raises `DataError` as
    `open_image` does for what the header shows."""
    with _opened(image) as opened:
        width, height = opened.size
        return (height, width) if _orientation(opened) in _TURNED else (width, height)


def require_image(image: ImageRef) -> None:
    """Raise `DataError` unless there is an image whose header can be read."""
    image_size(image)


def digest(image: ImageRef) -> str:
    """SHA-256 of the file's content, in hexadecimal."""
    if isinstance(image.source, bytes):
        return hashlib.sha256(image.source).hexdigest()
    try:
        facts = os.stat(image.source)
    except (OSError, ValueError):
        return hashlib.sha256(_content(image)).hexdigest()  # which says what is wrong
    return _digest_of_file(image.source, facts.st_mtime_ns, facts.st_size)


def thumbnail(image: ImageRef) -> bytes:
    """A small JPEG of the image: at most 320 pixels a side and about 20 kB. Raises `DataError` as `open_image` does."""
    picture = open_image(image)
    picture.thumbnail((_THUMBNAIL_SIDE, _THUMBNAIL_SIDE))
    encoded = b""
    for quality in _QUALITIES:
        file = io.BytesIO()
        picture.save(file, format="JPEG", quality=quality)
        encoded = file.getvalue()
        if len(encoded) <= _THUMBNAIL_BYTES:
            break
    return encoded


def image_name(image: ImageRef) -> str:
    """What to call an image in messages."""
    return f"of {len(image.source):,} bytes" if isinstance(image.source, bytes) else shown(image.source)


@lru_cache(maxsize=2**16)
def _digest_of_file(path: str, changed_ns: int, size: int) -> str:
    return hashlib.sha256(_content(ImageRef(source=path))).hexdigest()


def _content(image: ImageRef) -> bytes:
    if isinstance(image.source, bytes):
        return image.source
    try:
        return read_bytes(image.source, most=_MOST_BYTES)
    except OSError as error:
        raise _unreadable(image, error) from error


@contextmanager
def _opened(image: ImageRef) -> Iterator[Any]:
    """The image as Pillow opens it, its pixels not read yet."""
    pillow = _pillow()
    try:
        if isinstance(image.source, bytes):
            source: Any = io.BytesIO(image.source)
            with _picture(pillow, source) as opened:
                yield opened
        else:
            with open_file(image.source) as source, _picture(pillow, source) as opened:
                yield opened
    except DataError as error:
        raise DataError(f"the image {image_name(image)}: {error.message}", hint=error.hint) from error
    except OSError as error:
        raise _unreadable(image, error) from error
    except Exception as error:
        raise _broken(image, error) from error


@contextmanager
def _picture(pillow: Any, source: Any) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # what is too large is refused below
        try:
            opened = pillow.open(source, formats=_FORMATS)
        except pillow.DecompressionBombError as error:
            raise _too_large(str(error)) from error
    with opened:
        width, height = opened.size
        if width * height > MOST_PIXELS:
            raise _too_large(f"it has {width} x {height} of them")
        yield opened


def _too_large(reason: str) -> DataError:
    return DataError(
        f"at most {MOST_PIXELS:,} pixels are read, or a small file could fill the memory; {reason}",
        hint="Scale it down before.",
    )


def _orientation(opened: Any) -> int | None:
    """As EXIF has it, from what is known of the file without reading its pixels."""
    if opened.format == "PNG" and "exif" not in opened.info:
        return None  # or all of it would be read, in search of it
    found = opened.getexif().get(_ORIENTATION)
    return found if isinstance(found, int) else None


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError as error:
        raise DataError(
            "the rows have images, and Pillow, which reads them, is not installed here",
            hint="pip install 'grpo-core[vision]'",
        ) from error
    return PIL.Image


def _rgb(picture: Any) -> Image:
    import PIL.Image

    if picture.mode in _DEEP:
        picture = picture.point(lambda value: value / _STEPS_OF_16_BITS).convert("L")
    elif picture.mode == "F":
        low, high = picture.getextrema()
        scale = 255.0 if low >= 0.0 and high <= 1.0 else 1.0
        picture = picture.point(lambda value: value * scale).convert("L")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        seen = picture.convert("RGBA")
        ground = PIL.Image.new("RGBA", seen.size, (255, 255, 255, 255))
        return PIL.Image.alpha_composite(ground, seen).convert("RGB")
    rgb: Image = picture.convert("RGB")
    return rgb


def _unreadable(image: ImageRef, error: OSError) -> DataError:
    if error.strerror is None:  # Pillow's
        return _broken(image, error)
    return DataError(
        f"the image {image_name(image)} cannot be read: {error.strerror}",
        hint="Paths start at the folder of the data file. Rows with such images can be left out: "
        "dataset.bad_images=drop.",
    )


def _broken(image: ImageRef, error: Exception) -> DataError:
    reason = str(error).partition("<")[0].strip(" :") or type(error).__name__
    return DataError(
        f"the image {image_name(image)} is broken, or no picture: {reason}",
        hint="Rows with such images can be left out: dataset.bad_images=drop.",
    )
