"""The images that a run's records name."""

from __future__ import annotations

import io
import json
import logging
from dataclasses import replace
from pathlib import Path

import PIL.Image
import pytest

from grpo_core.loop.records import Records, completion_row
from grpo_core.loop.thumbnails import MOST_THUMBNAILS, allowance
from grpo_core.model.pixels import digest
from grpo_core.types import ImageRef, ScoredGroup, StepReport
from tests.core.loop.make import scored_group, step_report

PAD = "<|vision_start|><|image_pad|><|vision_end|>"


def picture(number: int, size: tuple[int, int] = (24, 16)) -> ImageRef:
    file = io.BytesIO()
    PIL.Image.new("RGB", size, (number % 256, number // 256, 90)).save(file, format="PNG")
    return ImageRef(source=file.getvalue())


def seeing(*images: ImageRef) -> ScoredGroup:
    scored = scored_group([1.0, 0.0])
    sample = replace(scored.group.sample, images=images)
    request = replace(scored.group.request, sample=sample, prompt_text=f"{PAD * len(images)}How many?")
    return replace(scored, group=replace(scored.group, request=request))


def report_of(*groups: ScoredGroup, step: int = 1, total_steps: int = 10) -> StepReport:
    return replace(step_report(step), groups=groups, advantages=((0.7, -0.7),) * len(groups), total_steps=total_steps)


def records_in(folder: Path) -> Records:
    records = Records(folder)
    records.show_images_as(PAD)
    return records


def rows_in(folder: Path, name: str = "completions/step-000001.jsonl") -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def kept(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "images").iterdir()}


def test_a_row_names_its_images_in_order_and_each_is_kept_once(tmp_path: Path) -> None:
    one, other = picture(1), picture(2)
    records_in(tmp_path).write_step(report_of(seeing(one, other), seeing(other), scored_group([1.0, 0.0])))
    rows = rows_in(tmp_path)
    assert [row.get("images") for row in rows[::2]] == [[digest(one), digest(other)], [digest(other)], None]
    assert [row["prompt"] for row in rows[::2]] == ["<image><image>How many?", "<image>How many?", "6*7?"]
    assert set(kept(tmp_path)) == {f"{digest(image)}.jpg" for image in (one, other)}
    for data in kept(tmp_path).values():
        assert PIL.Image.open(io.BytesIO(data)).format == "JPEG"


def test_a_probe_row_names_its_images_too(tmp_path: Path) -> None:
    image = picture(1)
    records_in(tmp_path).write_probes(0, [completion_row(seeing(image), 0)])
    assert rows_in(tmp_path, "probes/step-000000.jsonl")[0]["images"] == [digest(image)]
    assert set(kept(tmp_path)) == {f"{digest(image)}.jpg"}


def test_a_run_without_images_has_no_folder_for_them(tmp_path: Path) -> None:
    records_in(tmp_path).write_step(step_report())
    assert not (tmp_path / "images").exists()


@pytest.mark.parametrize("name", ["gone.png", 'it\'s "quoted" & <b>.png'])
def test_an_image_that_cannot_be_read_is_null_and_ends_no_run(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing, good = ImageRef(source=str(tmp_path / name)), picture(1)
    records = records_in(tmp_path / "run")
    with caplog.at_level(logging.WARNING):
        for step in (1, 2):
            records.write_step(report_of(seeing(missing, good), step=step))
    records.finish()
    assert rows_in(tmp_path / "run")[0]["images"] == [None, digest(good)]
    assert set(kept(tmp_path / "run")) == {f"{digest(good)}.jpg"}
    assert len(caplog.messages) == 1, "it is said once"
    assert "the run goes on" in caplog.messages[0]


def test_a_broken_file_has_a_name_and_no_thumbnail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = ImageRef(source=b"no picture at all")
    with caplog.at_level(logging.WARNING):
        records_in(tmp_path).write_step(report_of(seeing(broken)))
    assert rows_in(tmp_path)[0]["images"] == [digest(broken)]
    assert not (tmp_path / "images").exists()
    assert "have no thumbnail" in caplog.text


def test_a_folder_that_cannot_be_written_costs_thumbnails_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "images").write_text("a file is in the way")
    records = records_in(tmp_path)
    with caplog.at_level(logging.WARNING):
        records.write_step(report_of(seeing(picture(1))))
    records.finish()
    assert rows_in(tmp_path)[0]["images"] == [digest(picture(1))]
    assert "cannot be written" in caplog.text


@pytest.mark.parametrize("total", [1, 7, 1000, 10_000])
def test_the_places_of_a_run_are_spread_over_its_steps(total: int) -> None:
    places = [allowance(step, total) for step in range(1, total + 1)]
    assert sum(places) == MOST_THUMBNAILS
    assert max(places) - min(places) <= 1


def test_ten_thousand_steps_with_an_image_each_do_not_fill_the_disk(tmp_path: Path) -> None:
    records = records_in(tmp_path)
    for step in range(1, 101):
        records.write_step(report_of(seeing(picture(step)), step=step, total_steps=10_000))
    assert len(kept(tmp_path)) == 10


def test_a_resumed_run_keeps_the_same_images(tmp_path: Path) -> None:
    def go(records: Records, *steps: int) -> None:
        for step in steps:
            groups = [seeing(picture(10 * step + place)) for place in range(4)]
            records.write_step(report_of(*groups, step=step, total_steps=500))

    go(records_in(tmp_path / "whole"), 1, 2, 3, 4)
    go(records_in(tmp_path / "cut"), 1, 2, 3)
    again = records_in(tmp_path / "cut")
    again.cut_back(1)
    go(again, 2, 3, 4)
    assert kept(tmp_path / "cut") == kept(tmp_path / "whole")
    assert len(kept(tmp_path / "whole")) == 8


def test_a_large_image_has_a_small_thumbnail(tmp_path: Path) -> None:
    records_in(tmp_path).write_step(report_of(seeing(picture(1, size=(3000, 40)))))
    (data,) = kept(tmp_path).values()
    assert PIL.Image.open(io.BytesIO(data)).width == 320
    assert len(data) <= 20_000
