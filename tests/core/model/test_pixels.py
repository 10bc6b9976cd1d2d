"""Images of every kind become RGB in one way, and what is no picture is refused by name."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.errors import DataError, GrpoError
from grpo_core.model import pixels
from grpo_core.model.pixels import digest, image_size, open_image, require_image, thumbnail
from grpo_core.types import ImageRef

COLOURS: dict[str, Any] = {
    "RGB": (200, 30, 60),
    "RGBA": (200, 30, 60, 255),
    "L": 120,
    "LA": (120, 255),
    "1": 1,
    "CMYK": (0, 200, 150, 20),
    "I;16": 30000,
    "P": 5,
    "YCbCr": (100, 90, 200),
    "F": 0.5,
}


def encoded(picture: PIL.Image.Image, format: str = "PNG", **more: Any) -> ImageRef:
    file = io.BytesIO()
    picture.save(file, format=format, **more)
    return ImageRef(source=file.getvalue())


@pytest.mark.parametrize("mode", COLOURS)
def test_every_mode_becomes_rgb(mode: str) -> None:
    picture = PIL.Image.new(mode, (20, 10), COLOURS[mode])
    if mode == "P":
        picture.putpalette([0, 0, 0] * 5 + [200, 30, 60])
    image = encoded(picture, {"CMYK": "TIFF", "F": "TIFF", "YCbCr": "JPEG"}.get(mode, "PNG"))
    opened = open_image(image)
    assert (opened.mode, opened.size) == ("RGB", (20, 10))
    assert opened.getextrema() != ((0, 0), (0, 0), (0, 0))


def test_sixteen_bits_are_scaled_and_not_cut_off() -> None:
    picture = PIL.Image.new("I;16", (2, 1))
    picture.putpixel((0, 0), 65535)
    picture.putpixel((1, 0), 32896)
    opened = open_image(encoded(picture))
    assert opened.getpixel((0, 0)) == (255, 255, 255)
    assert opened.getpixel((1, 0)) == (128, 128, 128)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white(mode: str) -> None:
    clear = PIL.Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    clear.putpixel((0, 0), (10, 20, 30, 255))
    opened = open_image(encoded(clear.convert(mode) if mode != "P" else clear.quantize(4)))
    assert opened.getpixel((3, 3)) == (255, 255, 255)
    assert opened.getpixel((0, 0)) != (255, 255, 255)


def test_a_picture_is_turned_as_its_camera_was() -> None:
    picture = PIL.Image.new("RGB", (30, 10), (255, 0, 0))
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    image = encoded(picture, "JPEG", exif=exif)
    assert image_size(image) == (10, 30) == open_image(image).size


def test_the_first_of_several_frames_is_seen() -> None:
    frames = [PIL.Image.new("RGB", (8, 8), colour) for colour in ((255, 0, 0), (0, 0, 255))]
    image = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert open_image(image).getpixel((4, 4)) == (255, 0, 0)


def bomb() -> bytes:
    """A PNG of some bytes whose header asks for 40 gigabytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_a_decompression_bomb_is_refused_by_its_header() -> None:
    for look in (open_image, image_size, require_image):
        with pytest.raises(DataError, match=r"image of 65 bytes: at most 67,108,864 pixels are read.*10000000000"):
            look(ImageRef(source=bomb()))


def test_an_image_with_more_pixels_than_are_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "MOST_PIXELS", 99)
    with pytest.raises(DataError, match=r"at most 99 pixels are read.* it has 10 x 10 of them"):
        require_image(encoded(PIL.Image.new("L", (10, 10))))


@pytest.mark.parametrize(
    "content", [b"", b"no picture", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"\0" * 99]
)
def test_what_is_no_picture_is_refused(content: bytes) -> None:
    with pytest.raises(DataError, match=r"image of \d+ bytes is broken, or no picture"):
        require_image(ImageRef(source=content))


def test_a_file_that_is_cut_off_is_found_when_its_pixels_are_read(tmp_path: Path) -> None:
    whole = encoded(PIL.Image.effect_noise((64, 64), 90))
    assert isinstance(whole.source, bytes)
    (tmp_path / "cut.png").write_bytes(whole.source[: len(whole.source) // 2])
    image = ImageRef(source=str(tmp_path / "cut.png"))
    assert image_size(image) == (64, 64)
    with pytest.raises(DataError, match=r"cut\.png' is broken, or no picture: .*truncated"):
        open_image(image)


def test_a_path_that_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, reason in (("none.png", "No such file"), (".", "a folder, not a file"), ("fifo", "a FIFO, not a file")):
        with pytest.raises(DataError, match=rf"cannot be read: .*{reason}"):
            open_image(ImageRef(source=str(tmp_path / name)))
    with pytest.raises(DataError, match="cannot be read"):
        digest(ImageRef(source="a\0b"))


def test_the_content_alone_decides_the_digest(tmp_path: Path) -> None:
    image = encoded(PIL.Image.new("RGB", (9, 9), (1, 2, 3)))
    assert isinstance(image.source, bytes)
    file = tmp_path / "a.png"
    file.write_bytes(image.source)
    assert digest(ImageRef(source=str(file))) == digest(image)
    other = encoded(PIL.Image.new("RGB", (9, 9), (3, 2, 1)))
    assert isinstance(other.source, bytes)
    file.write_bytes(other.source)
    os.utime(file, ns=(1, 1))
    assert digest(ImageRef(source=str(file))) == digest(other)


def test_a_thumbnail_is_small(tmp_path: Path) -> None:
    for picture in (PIL.Image.effect_noise((1600, 900), 120).convert("RGB"), PIL.Image.new("RGBA", (40, 3))):
        small = thumbnail(encoded(picture))
        assert len(small) <= 20_000
        assert max(PIL.Image.open(io.BytesIO(small)).size) <= 320


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    monkeypatch.setattr(pixels, "PIL", None, raising=False)
    with pytest.raises(DataError, match=r"pip install 'grpo-core\[vision\]'"):
        require_image(ImageRef(source=b"x"))


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"]), st.integers(0, 200))
def test_whatever_bytes_come_it_is_a_picture_or_a_clear_error(data: bytes, format: str, place: int) -> None:
    good = encoded(PIL.Image.new("RGB", (6, 5), (9, 99, 199)), format).source
    assert isinstance(good, bytes)
    place = min(place, len(good))
    for source in (data, good[:place] + data, good[:place] + data + good[place + len(data) :]):
        try:
            assert open_image(ImageRef(source=source)).mode == "RGB"
        except GrpoError as error:
            told = error.message
        else:
            continue
        assert "the image of" in told
