"""`grpoctl datasets preview` with images: how large they are, and a page that shows them."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import PIL.Image
import pytest
from typer.testing import CliRunner, Result

from grpo_core.cli import dataset_page
from grpo_core.cli.main import build_app
from tests.vl_models import encoded_picture, make_vl_folder

HOSTILE = "</pre><script>alert(1)</script><img src=http://example.org/x onerror=alert(1)>"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a.png").write_bytes(encoded_picture(1, (80, 64)))
    (tmp_path / "b.png").write_bytes(encoded_picture(2, (700, 500)))
    rows = [
        {"query": f"<image>{HOSTILE}", "image": "a.png", "solution": "1"},
        {"query": "no image", "image": None, "solution": HOSTILE},
        {"query": "<image>and <image>", "image": ["a.png", "b.png"], "solution": "3"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def preview(*arguments: object) -> Result:
    result = CliRunner().invoke(build_app(), ["datasets", "preview", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def test_how_large_images_are_is_told(file: Path, tmp_path: Path) -> None:
    samples = json.loads(preview(file, "--json").stdout)["samples"]
    assert [(image["width"], image["height"]) for image in samples[2]["images"]] == [(80, 64), (700, 500)]
    assert "visual_tokens" not in samples[2]["images"][0]
    model = make_vl_folder("qwen2_vl", tmp_path / "model")
    samples = json.loads(preview(file, "--json", "--model", model).stdout)["samples"]
    tokens = [[image["visual_tokens"] for image in sample["images"]] for sample in samples]
    assert [len(each) for each in tokens] == [1, 0, 2]
    assert samples[2]["prompt_tokens"] > sum(tokens[2]) > tokens[0][0]
    assert "80 × 64 pixels, 6 visual tokens" in preview(file, "--model", model).stdout


def test_the_page_shows_every_picture_and_nothing_of_it_is_markup(file: Path, tmp_path: Path) -> None:
    preview(file, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    pictures = re.findall(r'<img alt="" src="data:image/jpeg;base64,([^"]+)">', page)
    sizes = [PIL.Image.open(io.BytesIO(base64.b64decode(each))).size for each in pictures]
    assert sizes == [(80, 64), (80, 64), (320, 229)]
    assert "<script" not in page
    assert page.count("<img") == 3
    assert "700 × 500 pixels" in page
    assert "default-src 'none'; img-src data:;" in page


def test_a_page_has_enough_pictures_some_time(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_page, "MOST_BYTES", 3000)
    preview(file, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 0 < page.count("<img") < 3
    assert "not shown: the page has enough pictures" in page


def test_a_page_that_cannot_be_written_is_told(file: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        build_app(), ["datasets", "preview", str(file), "--html", str(tmp_path / "none" / "page.html")]
    )
    assert "cannot be written: No such file" in str(result.exception)
