"""Runs on several datasets, by the real command: shares of each step, a column, metrics, resume and refusal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments

MIX = ("--dataset", "rows.jsonl,more.jsonl", "--dataset-weights", "0.75,0.25", "--prompts-per-step", "4")


def make_mixed_workplace(folder: Path) -> Path:
    """The usual one, with a second dataset that has a column of its own."""
    make_workplace(folder)
    rows = [{"query": f"Sing {number}", "wanted": 0, "tune": "c"} for number in range(6)]
    (folder / "more.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def kill_after_step_two(folder: Path) -> None:
    """What a kill during step 4 leaves of `whole`, as `cut`."""
    shutil.copytree(folder / "whole", folder / "cut")
    shutil.rmtree(folder / "cut" / "final")
    shutil.rmtree(folder / "cut" / "checkpoints" / "step-000004")


def test_two_datasets_are_mixed_by_weight_and_resumed_bit_for_bit(tmp_path: Path) -> None:
    make_mixed_workplace(tmp_path)
    done = grpoctl(tmp_path, *train_arguments("whole", *MIX, "--save-steps", "2", "--eval-rows", "4"))
    assert "mix: 75.0% rows (9 training rows), 25.0% more (5 training rows)" in done.stdout
    rows = metrics_of(tmp_path / "whole")
    assert [row["data/more/share"] for row in rows[1:]] == [0.25] * 4
    assert {"data/rows/reward", "data/more/reward"} <= rows[1].keys()
    columns = [row["columns"] for row in completions_of(tmp_path / "whole")]
    assert all(set(each) == {"dataset", "wanted", "tune"} for each in columns if isinstance(each, dict))
    kill_after_step_two(tmp_path)
    grpoctl(tmp_path, "resume", "cut")
    assert metrics_of(tmp_path / "cut") == metrics_of(tmp_path / "whole")
    assert completions_of(tmp_path / "cut") == completions_of(tmp_path / "whole")


def test_a_change_in_any_dataset_of_a_mix_is_refused_on_resume(tmp_path: Path) -> None:
    make_mixed_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", *MIX, "--save-steps", "2"))
    kill_after_step_two(tmp_path)
    text = (tmp_path / "more.jsonl").read_text(encoding="utf-8")
    (tmp_path / "more.jsonl").write_text(text.replace("Sing 3", "Sing three"), encoding="utf-8")
    assert "its rows changed" in grpoctl(tmp_path, "resume", "cut", code=2).stderr
    grpoctl(tmp_path, "resume", "cut", "--allow-changes")


def make_hub_workplace(folder: Path) -> tuple[str, ...]:
    """The usual one, with `hf:acme/songs`: a folder that the hub's library takes for a repository."""
    make_workplace(folder)
    (folder / "acme/songs").mkdir(parents=True)
    for part in range(2):
        rows = [{"query": f"Sing {row}", "wanted": row % 2} for row in range(part * 9, part * 9 + 9)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"acme/songs/train-{part}.jsonl").write_text(lines, encoding="utf-8")
    return ("--dataset", "hf:acme/songs?streaming=true&buffer=5", "--save-steps", "2")


def test_a_streamed_run_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    stream = make_hub_workplace(tmp_path)
    done = grpoctl(tmp_path, *train_arguments("whole", *stream, "--eval-rows", "4"))
    assert "data: training rows are streamed, 4 evaluation rows" in done.stdout
    asked = [row["sample_id"] for row in completions_of(tmp_path / "whole")][::4]
    assert len(set(asked)) == 12
    assert not {f"train-{row:06d}" for row in range(4)} & set(asked)
    kill_after_step_two(tmp_path)
    grpoctl(tmp_path, "resume", "cut")
    assert metrics_of(tmp_path / "cut") == metrics_of(tmp_path / "whole")
    assert completions_of(tmp_path / "cut") == completions_of(tmp_path / "whole")
    assert [row["epoch"] for row in metrics_of(tmp_path / "whole")[1:]] == [0.0] * 4


def test_a_stream_that_changed_where_it_stopped_is_refused_on_resume(tmp_path: Path) -> None:
    stream = make_hub_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", *stream))
    kill_after_step_two(tmp_path)
    file = tmp_path / "acme/songs/train-0.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("Sing 7", "Sing seven"), encoding="utf-8")
    assert "its rows changed" in grpoctl(tmp_path, "resume", "cut", code=2).stderr
    grpoctl(tmp_path, "resume", "cut", "--allow-changes")


def test_a_stream_has_no_end_to_evaluate_on(tmp_path: Path) -> None:
    stream = make_hub_workplace(tmp_path)
    shared = ("--model", "./model", "--rewards", "./mine.py:vowels", "--max-completion-tokens", "4")
    refused = grpoctl(tmp_path, "eval", *shared, *stream, code=2)
    assert "a stream has no evaluation rows" in refused.stderr
    assert "eval/prompts" in grpoctl(tmp_path, "eval", *shared, *stream, "--eval-rows", "2").stdout


def test_a_preview_of_a_stream_reads_its_first_rows_only(tmp_path: Path) -> None:
    stream = make_hub_workplace(tmp_path)
    shown = json.loads(grpoctl(tmp_path, "datasets", "preview", stream[1], "--json").stdout)
    assert (shown["rows"], shown["columns"]) == (5, ["wanted"])
    assert shown["warnings"] == [f"{stream[1]}: is streamed, and only its first rows were read"]


def test_a_mix_is_previewed_dataset_by_dataset(tmp_path: Path) -> None:
    make_mixed_workplace(tmp_path)
    one, other = json.loads(grpoctl(tmp_path, "datasets", "preview", "rows.jsonl,more.jsonl", "--json").stdout)
    assert (one["rows"], one["columns"]) == (12, ["dataset", "wanted"])
    assert (other["rows"], other["columns"]) == (6, ["dataset", "tune", "wanted"])
    assert other["samples"][0]["id"] == "train-more-000000"
