"""Files that safetensors reads, written a tensor at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from grpo_core.trainer.tensor_file import TensorFile, write_tensors

TENSORS = {
    "matrix": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "step": torch.tensor(7.0),
    "counts": torch.tensor([[1], [2**40]]),
    "flags": torch.tensor([True, False]),
    "none": torch.zeros(0, 4),
    "turned": torch.arange(6.0).reshape(2, 3).T,
}


def same(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)


def test_safetensors_reads_what_was_written(tmp_path: Path) -> None:
    write_tensors(tmp_path / "file", TENSORS, Tensor.detach)
    read = load_file(tmp_path / "file")
    assert read.keys() == TENSORS.keys()
    assert all(same(read[name], TENSORS[name]) for name in TENSORS)


def test_a_file_gives_each_tensor_and_its_shape_when_asked(tmp_path: Path) -> None:
    write_tensors(tmp_path / "file", TENSORS, Tensor.detach)
    file = TensorFile(tmp_path / "file")
    assert set(file) == set(TENSORS)
    assert len(file) == len(TENSORS)
    assert file.shape("matrix") == (2, 3)
    assert all(same(file[name], TENSORS[name]) for name in TENSORS)
    with pytest.raises(KeyError):
        file["another"]


def test_a_rank_without_a_path_gathers_every_tensor_all_the_same() -> None:
    gathered: list[Tensor] = []

    def whole(tensor: Tensor) -> Tensor:
        gathered.append(tensor)
        return tensor

    write_tensors(None, TENSORS, whole)
    assert len(gathered) == len(TENSORS)


def test_only_one_tensor_is_whole_at_a_time(tmp_path: Path) -> None:
    alive: list[int] = []

    def whole(tensor: Tensor) -> Tensor:
        alive.append((tmp_path / "file").stat().st_size)
        return tensor.clone()

    big = {str(number): torch.zeros(1 << 16) for number in range(4)}
    write_tensors(tmp_path / "file", big, whole)
    assert alive == sorted(alive)
    assert alive[-1] > alive[0]
