"""Images of a row, found and placed without decoding one."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import PIL.Image
import pytest

from grpo_core.data.images import image_refs, locate, place_images
from grpo_core.errors import DataError
from grpo_core.types import ImageRef, Message

A, B = ImageRef(source="a.png"), ImageRef(source=b"bytes")
QUESTION = Message(role="user", content="What is it?")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ()),
        ([], ()),
        ("a.png", (A,)),
        (b"bytes", (B,)),
        (["a.png", b"bytes"], (A, B)),
        ({"bytes": b"bytes", "path": "gone.png"}, (B,)),
        ([{"bytes": None, "path": "a.png"}], (A,)),
        ({"url": "a.png"}, (A,)),
    ],
)
def test_every_form_of_an_image_cell_is_read(value: object, expected: tuple[ImageRef, ...]) -> None:
    assert image_refs(value, column="images") == expected


def test_a_decoded_image_is_encoded_without_a_loss() -> None:
    for mode in ("RGB", "CMYK", "F", "I;16", "LA"):
        picture = PIL.Image.new(
            mode, (3, 2), 7 if mode in ("F", "I;16") else (7,) * len(PIL.Image.new(mode, (1, 1)).getbands())
        )
        (image,) = image_refs(picture, column="image")
        assert isinstance(image.source, bytes)
        with PIL.Image.open(io.BytesIO(image.source)) as again:
            assert again.size == (3, 2)
            assert again.getpixel((1, 1)) == picture.getpixel((1, 1))


def test_base64_is_read_bare_and_as_a_data_url() -> None:
    file = io.BytesIO()
    PIL.Image.new("RGB", (9, 9)).save(file, format="PNG")
    text = base64.b64encode(file.getvalue()).decode()
    for written in (text, f"data:image/png;base64,{text}", text[:40] + "\n" + text[40:]):
        assert image_refs(written, column="image") == (ImageRef(source=file.getvalue()),)
    with pytest.raises(DataError, match=r"column image: .* is no valid base64"):
        image_refs("data:image/png;base64,%%%", column="image")


def test_an_address_is_not_fetched() -> None:
    with pytest.raises(DataError, match=r"column image: 'https://example.org/a.png' is an address"):
        image_refs("https://example.org/a.png", column="image")


def test_a_row_with_a_column_for_images_and_none_in_it_has_no_placeholder() -> None:
    asked = [Message(role="user", content="<image>What?")]
    with pytest.raises(DataError, match=r"the prompt has 1 <image>, but the row has 0 images"):
        place_images(asked, ())


@pytest.mark.parametrize("value", [42, b"", {}, [3.5]])
def test_what_is_no_image_names_the_column(value: object) -> None:
    with pytest.raises(DataError, match=r"column images: .* is not an image"):
        image_refs(value, column="images")


def test_a_relative_path_starts_beside_the_data(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    assert locate(A, tmp_path) == ImageRef(source=str(tmp_path / "a.png"))
    assert locate(ImageRef(source="b.png"), tmp_path) == ImageRef(source="b.png")
    assert locate(A, None) == A
    assert locate(ImageRef(source="x" * 5000), tmp_path) == ImageRef(source="x" * 5000)


def test_images_without_a_placeholder_come_before_the_first_question() -> None:
    system = Message(role="system", content="Be brief.")
    placed = place_images((system, QUESTION), (A, B))
    assert placed == (system, Message(role="user", content="<image><image>What is it?"))


def test_placeholders_that_match_stay_where_they_are() -> None:
    written = (Message(role="user", content="Is <image> like <image>?"),)
    assert place_images(written, (A, B)) == written


def test_a_text_without_images_may_speak_of_the_tag() -> None:
    written = (Message(role="user", content="What does <image> mean in SVG?"),)
    assert place_images(written, (), has_column=False) == written


def test_more_placeholders_than_images_is_an_error() -> None:
    with pytest.raises(DataError, match="has 2 <image>, but the row has 1 image"):
        place_images((Message(role="user", content="<image> <image>"),), (A,))
