"""A checkpoint is what was written, or it is not loaded; the error says which older one is."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import CheckpointError
from grpo_core.loop.checkpoint import LoopState, save_checkpoint
from grpo_core.loop.checksums import SUMS_FILE, faults_of_files
from grpo_core.loop.restore import read_state, restore
from grpo_core.ranks.ranks import Alone


class FakeTrainer:
    """Writes one file, and says what it read."""

    def __init__(self) -> None:
        self.read: str | None = None
        self.makes_more = False

    def save(self, directory: Path) -> None:
        (directory / "weights").write_text("precious", encoding="utf-8")

    def restore(self, directory: Path) -> None:
        self.read = (directory / "weights").read_text(encoding="utf-8")
        if self.makes_more:
            (directory / "put together").touch()


def saved(run: Path, *steps: int) -> list[Path]:
    """Checkpoints of these steps."""
    trainer: Any = FakeTrainer()
    states = [LoopState(step=step, version=step, zero_reward_steps=0, fingerprint="abc") for step in steps]
    return [save_checkpoint(run, state, trainer, keep=None) for state in states]


def load(checkpoint: Path, **more: Any) -> FakeTrainer:
    trainer = FakeTrainer()
    restore(checkpoint, trainer, **more)  # type: ignore[arg-type]
    return trainer


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[3] ^= 16
    path.write_bytes(data)


def test_a_sound_checkpoint_is_loaded(tmp_path: Path) -> None:
    (checkpoint,) = saved(tmp_path, 2)
    assert load(checkpoint).read == "precious"
    assert read_state(checkpoint).step == 2


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda at: flip(at / "trainer/weights"), "trainer/weights is not what was written: its checksum is another"),
    (lambda at: (at / "trainer/weights").unlink(), "trainer/weights is missing"),
    (lambda at: (at / "trainer/weights").write_bytes(b""), "trainer/weights is not what was written"),
    (lambda at: (at / "trainer/more").touch(), "trainer/more has no checksum in SHA256SUMS"),
    (lambda at: (at / SUMS_FILE).write_bytes(b""), "SHA256SUMS cannot be read: line 1 is not a checksum"),
    (lambda at: (at / "state.json").unlink(), "state.json cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_a_damaged_one_names_the_file_and_the_newest_older_one_that_is_sound(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    oldest, older, newest = saved(tmp_path, 1, 2, 10)
    damage(newest)
    flip(older / "trainer/weights")
    with pytest.raises(CheckpointError) as caught:
        load(newest)
    assert f"{newest} is damaged: {message}" in caught.value.message
    assert caught.value.hint == f"the newest older one that is sound: grpoctl resume {oldest}"
    with pytest.raises(CheckpointError, match=f"grpoctl eval {oldest}"):
        load(newest, command="eval")
    flip(oldest / "trainer/weights")
    with pytest.raises(CheckpointError, match="no older checkpoint of its run is sound"):
        load(newest)


def test_one_that_its_run_removes_meanwhile_is_said_to_be_gone(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="step-000002 was removed while it was read"):
        load(tmp_path / "checkpoints" / "step-000002")


def test_many_faults_are_counted(tmp_path: Path) -> None:
    (checkpoint,) = saved(tmp_path, 2)
    for number in range(5):
        (checkpoint / f"{number}").touch()
    with pytest.raises(CheckpointError, match=r"0 has no .*; 1 has no .*; 2 has no checksum in SHA256SUMS, and 2 more"):
        load(checkpoint)


GOOD = {"step": 2, "version": 2, "zero_reward_steps": 0, "fingerprint": "abc"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "EOF"),
        ("[1]", "Input should be an object"),
        ("\xff", "Invalid JSON"),
        ("[" * 100_000, "Invalid JSON: recursion limit"),
        (json.dumps({**GOOD, "other": 2}), "other: Unexpected"),
        (json.dumps({key: GOOD[key] for key in GOOD if key != "version"}), "version: Field required"),
        (json.dumps({**GOOD, "version": -1}), "version: Input should be greater than or equal to 0"),
        (json.dumps({**GOOD, "version": 10**30}), "version: Input should be less than or equal to 1000000000"),
        (json.dumps({**GOOD, "version": True}), "version: Input should be a valid integer"),
        (json.dumps({**GOOD, "version": 2.5}), "version: Input should be a valid integer"),
        (json.dumps({**GOOD, "threads": 10**6}), "threads: Input should be less than or equal to 65536"),
        (json.dumps({**GOOD, "processes": "2"}), "processes: Input should be a valid integer"),
        (json.dumps({**GOOD, "step": 3}), "is of step 3, and the folder's name says 2"),
    ],
)
def test_a_state_that_cannot_be_names_what_is_wrong_and_an_older_checkpoint(
    tmp_path: Path, text: str, words: str
) -> None:
    older, checkpoint = saved(tmp_path, 1, 2)
    (checkpoint / SUMS_FILE).unlink()
    (checkpoint / "state.json").write_text(text, encoding="latin-1")
    with pytest.raises(CheckpointError, match=f"is damaged: state.json .*{words}") as caught:
        read_state(checkpoint)
    assert str(older) in str(caught.value.hint)


def test_a_state_that_somebody_changed_is_refused_where_there_are_checksums(tmp_path: Path) -> None:
    (checkpoint,) = saved(tmp_path, 2)
    (checkpoint / "state.json").write_text(json.dumps({**GOOD, "version": 3}), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"state\.json is not what was written"):
        read_state(checkpoint)


def test_a_checkpoint_without_checksums_is_taken_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (checkpoint,) = saved(tmp_path, 2)
    (checkpoint / SUMS_FILE).unlink()
    with caplog.at_level(logging.WARNING, logger="grpo_core"):
        assert load(checkpoint).read == "precious"
    assert "step-000002 has no SHA256SUMS" in caplog.text


def test_what_a_trainer_makes_of_its_files_belongs_to_the_checkpoint(tmp_path: Path) -> None:
    (checkpoint,) = saved(tmp_path, 2)
    trainer: Any = FakeTrainer()
    trainer.makes_more = True
    restore(checkpoint, trainer)
    assert faults_of_files(checkpoint) == []
    assert "trainer/put together" in (checkpoint / SUMS_FILE).read_text(encoding="utf-8")


class SecondOfTwo(Alone):
    """Rank 1 of two, of which rank 0 found a fault, or none."""

    is_first = False  # type: ignore[assignment]
    rank = 1

    def __init__(self, found: object) -> None:
        self.found = found

    def gather(self, value: Any) -> list[Any]:
        assert value is None  # it does not look itself
        return [self.found, value]


def test_rank_0_alone_verifies_and_the_others_hear_of_it(tmp_path: Path) -> None:
    (checkpoint,) = saved(tmp_path, 2)
    flip(checkpoint / "trainer/weights")
    with pytest.raises(CheckpointError, match="it is damaged"):
        load(checkpoint, ranks=SecondOfTwo(("it is damaged", None)))
    assert load(checkpoint, ranks=SecondOfTwo(None)).read is not None
