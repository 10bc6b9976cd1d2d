"""Checkpoints: written aside and renamed, kept to a limit, refused when they are not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from grpo_core.errors import CheckpointError
from grpo_core.loop.checkpoint import (
    LoopState,
    export_model,
    forget_checkpoints,
    good_checkpoint,
    newest_checkpoint,
    save_checkpoint,
)
from grpo_core.loop.restore import read_state
from grpo_core.ranks.ranks import Alone
from grpo_core.recipe.folder import checkpoints_of


class FakeTrainer:
    """Writes one file, or fails half way."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def save(self, directory: Path) -> None:
        (directory / "weights").write_text("w", encoding="utf-8")
        if self.error is not None:
            raise self.error

    export = save


def state(step: int) -> LoopState:
    return LoopState(step=step, version=step, zero_reward_steps=0, fingerprint="abc")


def test_a_checkpoint_holds_the_loops_state_and_the_trainers(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, state(7), FakeTrainer(), keep=None)  # type: ignore[arg-type]
    assert read_state(path) == state(7)
    assert (path / "trainer" / "weights").read_text(encoding="utf-8") == "w"
    assert newest_checkpoint(tmp_path) == path


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 15, 100):
        save_checkpoint(tmp_path, state(step), FakeTrainer(), keep=2)  # type: ignore[arg-type]
    assert [path.name for path in checkpoints_of(tmp_path)] == ["step-000015", "step-000100"]


def test_without_a_limit_every_checkpoint_stays(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        save_checkpoint(tmp_path, state(step), FakeTrainer(), keep=None)  # type: ignore[arg-type]
    assert len(checkpoints_of(tmp_path)) == 3


def test_a_write_that_fails_leaves_the_last_checkpoint_and_says_what_to_do(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, state(5), FakeTrainer(), keep=1)  # type: ignore[arg-type]
    full = OSError(28, "No space left on device")
    with pytest.raises(CheckpointError, match=r"step-000010 cannot be written: No space left on device\s+free disk"):
        save_checkpoint(tmp_path, state(10), FakeTrainer(full), keep=1)  # type: ignore[arg-type]
    newest = newest_checkpoint(tmp_path)
    assert newest is not None
    assert read_state(newest) == state(5)


def test_a_half_written_folder_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / ".partial-step-000010").mkdir(parents=True)
    assert newest_checkpoint(tmp_path) is None


def test_what_a_failed_write_left_is_freed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        save_checkpoint(tmp_path, state(10), FakeTrainer(OSError(28, "full")), keep=1)  # type: ignore[arg-type]
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_the_failure_of_a_trainers_own_writer_is_one_of_the_checkpoint(tmp_path: Path) -> None:
    for error in (CheckpointError("its state cannot be written"), SafetensorError("its state cannot be written")):
        with pytest.raises(CheckpointError, match="step-000010 cannot be written: its state cannot be written"):
            save_checkpoint(tmp_path, state(10), FakeTrainer(error), keep=1)  # type: ignore[arg-type]


def test_the_last_good_checkpoint_is_kept_beyond_the_limit(tmp_path: Path) -> None:
    for step, good in ((5, 0), (10, 5), (15, 12), (20, 12), (25, 12)):
        save_checkpoint(tmp_path, state(step), FakeTrainer(), keep=1, good_step=good)  # type: ignore[arg-type]
    assert [path.name for path in checkpoints_of(tmp_path)] == ["step-000010", "step-000025"]
    assert good_checkpoint(tmp_path, 12) == tmp_path / "checkpoints" / "step-000010"
    assert good_checkpoint(tmp_path, 9) is None


def test_checkpoints_of_a_future_that_is_forgotten_are_removed(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        save_checkpoint(tmp_path, state(step), FakeTrainer(), keep=None)  # type: ignore[arg-type]
    forget_checkpoints(tmp_path, 5)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000005"]


def test_the_model_replaces_an_older_one_whole(tmp_path: Path) -> None:
    (tmp_path / "final").mkdir()
    (tmp_path / "final" / "old").touch()
    export_model(tmp_path / "final", FakeTrainer(), {"README.md": "# How"})  # type: ignore[arg-type]
    assert sorted(path.name for path in (tmp_path / "final").iterdir()) == ["README.md", "weights"]
    assert (tmp_path / "final" / "README.md").read_text(encoding="utf-8") == "# How"


class SecondOfTwo(Alone):
    """Rank 1 of two, of which the other meets a full disk in the last part of writing."""

    is_first = False  # type: ignore[assignment]
    rank = 1

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def gather(self, value: Any) -> list[Any]:
        self.asked.append(value)
        return ["No space left on device" if len(self.asked) == 3 else None, value]


def test_every_rank_hears_of_a_failed_write_of_another(tmp_path: Path) -> None:
    ranks = SecondOfTwo()
    folder = tmp_path / "checkpoints" / ".partial-step-000010" / "trainer"
    folder.mkdir(parents=True)  # rank 0 made it
    with pytest.raises(CheckpointError, match="step-000010 cannot be written: No space left on device"):
        save_checkpoint(tmp_path, state(10), FakeTrainer(), keep=1, ranks=ranks)  # type: ignore[arg-type]
    assert ranks.asked == [None, None, None]
    assert folder.exists()  # it is rank 0 that removes it
