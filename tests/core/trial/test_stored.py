"""Recorded completions read back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from grpo_core.errors import DataError, UsageError
from grpo_core.trial.stored import differing, read_step, step_files, to_groups
from tests.core.trial.stored_run import TEXTS, make_run


def test_what_a_run_recorded_comes_back_as_its_groups(tmp_path: Path) -> None:
    files = step_files(make_run(tmp_path))
    assert list(files) == [1, 2]
    stored = read_step(2, files[2])
    first, second = to_groups(stored, frozenset({"solution", "more"}))
    assert stored.columns == {"solution"}
    assert stored.sizes() == [3, 3]
    assert tuple(completion.text for completion in first.completions) == TEXTS
    assert [completion.truncated for completion in first.completions] == [False, True, False]
    assert (first.sample.id, second.sample.id) == ("train-000000", "train-000001")
    assert second.sample.columns == {"solution": 2, "more": None}
    assert second.request.prompt_text == "user: ?"


def test_tokens_are_made_of_the_text_and_other_numbers_of_them_are_counted(tmp_path: Path) -> None:
    files = step_files(make_run(tmp_path, steps=1))
    stored = read_step(1, files[1])
    groups = list(to_groups(stored, stored.columns, lambda texts: [(7,)] * len(texts)))
    assert groups[0].completions[0].token_ids == (7,)
    assert differing(stored, groups) == 2  # the third of each group was an end token alone


def test_steps_can_be_chosen(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert list(step_files(run, [2])) == [2]
    with pytest.raises(UsageError) as caught:
        step_files(run, [2, 9])
    assert str(caught.value) == f"{run} has no completions of step 9\n  It has steps 1 to 2."


def test_a_folder_without_completions_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no recorded completions"):
        step_files(tmp_path)


GOOD = {
    "sample_id": "a",
    "member": 0,
    "prompt": "",
    "completion": "",
    "tokens": 1,
    "finish_reason": "stop",
    "columns": {},
    "scores": {},
    "failures": {},
    "total": None,
}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([""], "line 1: is not valid JSON"),
        (["[]"], "line 1: is no record of a completion, but list"),
        ([json.dumps(GOOD), json.dumps({**GOOD, "completion": 3})], "line 2: is no record .* 'completion' is missing"),
        ([json.dumps({**GOOD, "member": 1})], "does not begin with the first completion of a group"),
        ([json.dumps({key: GOOD[key] for key in GOOD if key != "total"})], "line 1: .* 'total' is missing or wrong"),
        ([json.dumps({**GOOD, "scores": {"a": "b"}})], "line 1: is no record .* 'scores' is missing or wrong"),
        ([json.dumps({**GOOD, "finish_reason": "x"})], "line 1: is no record .* 'finish_reason' is missing or wrong"),
    ],
)
def test_what_is_no_record_is_an_error_with_its_line(tmp_path: Path, lines: list[str], words: str) -> None:
    file = tmp_path / "step-000001.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=words) as caught:
        read_step(1, file)
    assert caught.value.hint is not None


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "step-000001.jsonl")
    with pytest.raises(DataError, match="cannot be read: it is a FIFO, not a file"):
        read_step(1, tmp_path / "step-000001.jsonl")


def test_a_file_of_another_name_is_no_step(tmp_path: Path) -> None:
    run = make_run(tmp_path, steps=1)
    (run / "completions" / "step-garbage.jsonl").touch()
    assert list(step_files(run)) == [1]
