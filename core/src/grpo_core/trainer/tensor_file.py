"""Safetensors files one tensor at a time: neither writing nor reading has all of them in memory.

The layout is the public one: eight bytes with the length of a JSON header, the header (name, type, shape and place of
each tensor), then their bytes one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

__all__ = ["TensorFile", "write_tensors"]

_TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_ALIGNMENT = 8


def write_tensors(path: Path | None, tensors: Mapping[str, Tensor], whole: Callable[[Tensor], Tensor]) -> None:
    """Write tensors, each made whole in its turn; without a path they are made whole all the same, as other ranks
    wait for that. Raises `OSError`."""
    if path is None:
        for tensor in tensors.values():
            whole(tensor)
        return
    with path.open("wb") as file:
        file.write(_header(tensors))
        for tensor in tensors.values():
            plain = whole(tensor).detach().cpu().contiguous()
            file.write(plain.reshape(-1).view(torch.uint8).numpy().data)


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    places, start = dict[str, object](), 0
    for name, tensor in tensors.items():
        end = start + tensor.numel() * tensor.element_size()
        places[name] = {"dtype": _TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(places).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


class TensorFile(Mapping[str, Tensor]):
    """The tensors of a file, each read when it is asked for. Raises `OSError` or `SafetensorError`."""

    def __init__(self, path: Path) -> None:
        opened: Any = safe_open(path, framework="pt")
        self._file = opened
        self._names: tuple[str, ...] = tuple(opened.keys())

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        tensor: Tensor = self._file.get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def shape(self, name: str) -> torch.Size:
        """Of a tensor, without reading it."""
        return torch.Size(self._file.get_slice(name).get_shape())
