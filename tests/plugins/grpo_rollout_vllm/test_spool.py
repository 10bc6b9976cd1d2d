from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from grpo_core.api import RolloutError
from grpo_rollout_vllm import spool
from grpo_rollout_vllm.fingerprint import Fingerprint
from grpo_rollout_vllm.spool import Spool, passing, read_tensors
from tests.plugins.grpo_rollout_vllm.making import weights


def test_what_is_read_is_what_was_written_with_its_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_FILE_BYTES", 64)  # a file for each
    written = Spool(tmp_path).write(weights(), 3)
    assert len(list(written.folder.iterdir())) == 2
    arrived = Fingerprint()
    read = dict(passing(read_tensors(written.folder), arrived))
    assert {name: tensor.tolist() for name, tensor in read.items()} == {n: t.tolist() for n, t in weights()}
    assert written.label == f"grpo-3-{arrived.text}"
    assert written.tensors == 2


def test_a_stream_that_uses_one_memory_for_all_is_written_right(tmp_path: Path) -> None:
    shared = torch.zeros(3)

    def stream():  # type: ignore[no-untyped-def]
        for value in (1.0, 2.0):
            shared.fill_(value)
            yield f"w{value:.0f}", shared

    read = dict(read_tensors(Spool(tmp_path).write(stream(), 0).folder))
    assert {name: tensor.tolist() for name, tensor in read.items()} == {"w1": [1.0] * 3, "w2": [2.0] * 3}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RolloutError, match=r"the folder of the weights, .*file, cannot be made or written: Not a dir"):
        Spool(tmp_path / "file")


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    made = Spool(tmp_path)

    def full():  # type: ignore[no-untyped-def]
        yield weights()[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(RolloutError, match=r"cannot be written to .*v0: No space left on device") as raised:
        made.write(full(), 0)
    assert "rollout.options.weights_folder" in str(raised.value.hint)


def test_what_a_killed_process_left_is_removed_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    mine = Spool(tmp_path)
    left = tmp_path / f"{next(tmp_path.iterdir()).name.rpartition(str(os.getpid()))[0]}999999999-7f"
    left.mkdir()
    again = Spool(tmp_path)
    assert not left.exists()
    assert len(list(tmp_path.iterdir())) == 2
    mine.close()
    again.close()
    assert list(tmp_path.iterdir()) == []
