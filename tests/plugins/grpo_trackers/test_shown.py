from __future__ import annotations

from pathlib import Path

from grpo_trackers.shown import COLUMNS, completion_rows, flat, numbers_of, read_note, settings_of, write_note
from tests.plugins.grpo_trackers.runs import RECIPE, report, started


def test_what_did_not_apply_is_left_out_and_an_evaluation_is_part_of_its_step() -> None:
    assert numbers_of(report(2, mean=0.5)) == {"reward/mean": 0.5}
    assert numbers_of(report(2, mean=0.5, evaluated=True)) == {"reward/mean": 0.5, "eval/accuracy": 0.75}


def test_a_row_of_completions_has_a_value_for_each_column() -> None:
    first, second = completion_rows(report(2, mean=0.5, with_completions=True))
    assert dict(zip(COLUMNS, first, strict=True)) == {
        "step": 2,
        "sample": "train-000001",
        "prompt": "6*7?",
        "completion": "abc",
        "total": 1.0,
        "scores": '{"r": 1.0}',
        "advantage": 0.5,
        "tokens": 3,
        "finish": "stop",
    }
    assert second[4] is None


def test_settings_are_the_recipe_and_flat_ones_have_dotted_names(tmp_path: Path) -> None:
    settings = settings_of(started(tmp_path))
    assert settings == {**RECIPE, "grpo_core": "0.1.0", "total_steps": 4}
    assert dict(flat(settings))["run.report_to"] == ["x"]


def test_a_note_is_found_again(tmp_path: Path) -> None:
    assert read_note(tmp_path, "wandb") == {}
    write_note(tmp_path, "wandb", id="a1")
    assert read_note(tmp_path, "wandb") == {"id": "a1"}
