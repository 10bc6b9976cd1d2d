"""Thumbnails in the page."""

from __future__ import annotations

import base64
from pathlib import Path

from grpo_core.report.answers import read_answers
from grpo_core.report.images import is_digest, read_pictures
from grpo_core.report.run import open_runs
from grpo_core.report.write import make_page
from tests.core.report.making import answer_row, opened, write_run
from tests.core.report.test_write import data_of

JPEG = b"\xff\xd8\xff"


def name(number: int) -> str:
    return f"{number:064x}"


def keep(folder: Path, number: int, size: int = 3000) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name(number)}.jpg").write_bytes(JPEG + b"x" * (size - len(JPEG)))
    return name(number)


def test_what_fits_is_there_and_nothing_is_said(tmp_path: Path) -> None:
    names = [keep(tmp_path, number) for number in range(3)]
    found = read_pictures(tmp_path, names[:1], names, budget_bytes=10**6)
    assert list(found.texts) == names
    assert found.text == ""
    assert base64.b64decode(found.texts[names[0]]).startswith(JPEG)


def test_probes_come_first_and_completions_are_evenly_spread(tmp_path: Path) -> None:
    names = [keep(tmp_path, number) for number in range(40)]
    found = read_pictures(tmp_path, names[20:21], names, budget_bytes=20_000)
    assert list(found.texts) == [names[20], names[0], names[13], names[26], names[39]]
    assert sum(map(len, found.texts.values())) <= 20_000
    assert found.text == f"{len(found.texts)} of 40 images are here: the rest is left out to keep this file small."


def test_what_is_no_thumbnail_is_left_out_and_counted(tmp_path: Path) -> None:
    good = keep(tmp_path, 1)
    huge = keep(tmp_path, 2, size=10**6)
    (tmp_path / f"{name(3)}.jpg").write_text("<script>alert(1)</script>")
    found = read_pictures(tmp_path, (), [good, huge, name(3), name(4)], budget_bytes=10**6)
    assert list(found.texts) == [good]
    assert found.text.startswith("1 of 4 images are here: ")


def test_only_a_digest_is_a_name() -> None:
    assert is_digest(name(7))
    for other in ("../" * 20, name(7).upper().replace("0", "G"), name(7) + "\n", None, 7, ["a"]):
        assert not is_digest(other)


def test_a_page_has_each_image_once_and_the_prompts_name_them(tmp_path: Path) -> None:
    rows = [answer_row(member=member, images=[name(1), None, "../../etc/passwd"]) for member in (0, 1)]
    run = write_run(tmp_path / "run", [{"step": 1, "reward/mean": 0.5}], completions={1: rows}, probes={0: rows[:1]})
    keep(run / "images", 1)
    page = make_page(open_runs([run]), budget_bytes=10**6)
    data = data_of(page)
    assert list(data["images"]) == [name(1)]
    assert [sample["images"] for sample in data["runs"][0]["samples"]] == [[name(1), "", ""]]
    assert page.count(data["images"][name(1)]) == 1
    assert "img-src data:" in page


def test_two_runs_share_one_budget_of_images(tmp_path: Path) -> None:
    runs = []
    for letter in "ab":
        rows = [answer_row(sample_id=str(at), images=[name(at + 100 * (letter == "b"))]) for at in range(30)]
        runs.append(write_run(tmp_path / letter, [{"step": 1, "reward/mean": 0.5}], completions={1: rows}))
        for at in range(30):
            keep(runs[-1] / "images", at + 100 * (letter == "b"))
    page = make_page(open_runs(runs), budget_bytes=10**6, image_budget_bytes=50_000)
    assert 30_000 < sum(map(len, data_of(page)["images"].values())) <= 50_000
    assert page.count("images are here") == 4, "beside the completions and under what is left out, for each run"


def test_a_row_whose_images_are_something_else_is_named(tmp_path: Path) -> None:
    run = opened(tmp_path / "run", completions={1: [answer_row(images={"a": 1}), answer_row()]})
    assert len(list(read_answers(run.completions[0], run.notes))) == 1
    assert "lack what a completion has" in run.notes[-1]
