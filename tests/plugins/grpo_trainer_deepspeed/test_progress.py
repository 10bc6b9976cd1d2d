"""What must agree before parts of a checkpoint are read; no DeepSpeed is needed for that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grpo_core.errors import CheckpointError
from grpo_trainer_deepspeed.checkpoint import Progress, convert, read_progress, write, write_progress

NOW = Progress(updates=0, world_size=2, stage=3, precision="bf16")


def test_a_fitting_state_says_how_far_it_is(tmp_path: Path) -> None:
    write_progress(tmp_path, replace(NOW, updates=7))
    assert read_progress(tmp_path, NOW) == replace(NOW, updates=7)


@pytest.mark.parametrize(
    ("other", "said", "hint"),
    [
        ({"stage": 2}, "of a run with stage 2, and this one has 3", "with the trainer.options.stage"),
        ({"precision": "fp32"}, "of a run with precision fp32, and this one has bf16", "with the trainer.precision"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(tmp_path: Path, other: dict[str, int], said: str, hint: str) -> None:
    write_progress(tmp_path, replace(NOW, **other))
    with pytest.raises(CheckpointError, match=said) as caught:
        read_progress(tmp_path, NOW)
    assert hint in str(caught.value.hint)


def test_the_state_of_another_trainer_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "trainer.json").write_text('{"updates": 3, "precision": "fp32", "format": 1}')
    with pytest.raises(CheckpointError, match=r"not written by the deepspeed trainer, .* its format is 1, not"):
        read_progress(tmp_path, NOW)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"format": "deepspeed-1"}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "trainer.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"trainer\.json cannot be read"):
        read_progress(tmp_path, NOW)


def test_the_number_of_processes_may_be_another(tmp_path: Path) -> None:
    write_progress(tmp_path, replace(NOW, world_size=4))
    assert read_progress(tmp_path, NOW).world_size == 4


def test_parts_that_cannot_be_put_together_are_named_and_leave_nothing_that_looks_whole(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="engine cannot be put together: "):
        convert(tmp_path)
    assert not (tmp_path / "universal").exists()


class Saving:
    """As much of an engine as saving needs; its file cannot be written."""

    def __init__(self) -> None:
        self.checkpoint_engine = self
        self.finished = False

    def save(self, *arguments: object) -> None:
        raise OSError(28, "No space left on device")

    def save_checkpoint(self, directory: str, **more: object) -> None:
        self.checkpoint_engine.save({}, directory)
        self.finished = True  # and has met the other ranks


def test_a_part_that_cannot_be_written_is_an_error_only_when_the_others_have_been_met(tmp_path: Path) -> None:
    engine = Saving()
    with pytest.raises(CheckpointError, match=r"cannot be written: .*No space left on device"):
        write(engine, tmp_path, lambda flag: flag, trained_only=False)
    assert engine.finished


def test_another_ranks_failure_is_an_error_here_too(tmp_path: Path) -> None:
    engine = Saving()
    engine.save = lambda *arguments: None  # type: ignore[method-assign]
    answers = iter([True, False])
    with pytest.raises(CheckpointError, match="another rank could not write its part"):
        write(engine, tmp_path, lambda flag: next(answers), trained_only=False)


def test_a_folder_that_another_machine_does_not_see_is_refused(tmp_path: Path) -> None:
    engine = Saving()
    with pytest.raises(CheckpointError, match="not there on every machine") as caught:
        write(engine, tmp_path / "elsewhere", lambda flag: flag, trained_only=False)
    assert "a disk that all machines share" in str(caught.value.hint)
    assert not engine.finished
