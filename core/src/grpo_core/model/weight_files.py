"""What the files of a model's weights say of themselves, read without loading one: complete, of the config's shapes,
and numbers that can be trained.

Of safetensors only: a folder with other files, a GGUF file and a hub id are found out about when they are loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grpo_core.regular_files import open_file, read_bytes

__all__ = ["weight_files_fault"]

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_LENGTH_BYTES = 8
_MOST_HEADER_BYTES = 10**8
"""As the format has it."""
_TRAINABLE = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")


def weight_files_fault(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> str | None:
    """The first thing that is wrong with the weights in a folder; None for sound ones and for no safetensors.

    `shapes` are those of the model's parameters by its config; names that they have not are the loader's to judge.
    """
    try:
        for file in _files(folder):
            for name, weight in _header(file).items():
                if name in shapes and (fault := _weight_fault(weight, shapes[name])):
                    return f"{file.name}: {name} {fault}"
    except OSError as error:
        return f"{Path(error.filename or folder).name} cannot be read: {error.strerror}"
    except ValueError as error:
        return str(error)
    return None


def _files(folder: Path) -> Iterator[Path]:
    """The files that would be loaded."""
    if (folder / SINGLE).exists():
        yield folder / SINGLE
    elif (folder / INDEX).exists():
        try:
            names = sorted(set(json.loads(read_bytes(folder / INDEX, most=_MOST_HEADER_BYTES))["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{INDEX} is no index of safetensors files: it is damaged") from None
        yield from (folder / str(name) for name in names)


def _header(file: Path) -> dict[str, Any]:
    """Name -> type, shape and place of every weight in a file that is as long as it says."""
    with open_file(file) as source:
        size = source.seek(0, 2)
        source.seek(0)
        length = int.from_bytes(source.read(_LENGTH_BYTES), "little")
        if size < _LENGTH_BYTES or length > min(_MOST_HEADER_BYTES, size - _LENGTH_BYTES):
            raise ValueError(f"{file.name} is no safetensors file, or is cut off: it has {size:,} bytes")
        text = source.read(length)
    try:
        found = {name: dict(weight) for name, weight in json.loads(text).items() if name != "__metadata__"}
        ends = [int(weight["data_offsets"][1]) for weight in found.values()]
        promised = _LENGTH_BYTES + length + max(ends, default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise ValueError(f"{file.name} is no safetensors file: its header is damaged") from None
    if promised != size:
        raise ValueError(f"{file.name} is damaged: it has {size:,} bytes, and its header promises {promised:,}")
    return found


def _weight_fault(weight: Mapping[str, Any], shape: tuple[int, ...]) -> str | None:
    kind, stored = weight.get("dtype"), weight.get("shape")
    if kind not in _TRAINABLE:
        return f"is of the type {kind}: quantised weights cannot be trained; take the model they were made of"
    if stored != list(shape):
        return f"has the shape {stored} in its files and {list(shape)} by its config.json"
    return None
