"""Whether what the settings name is on this machine: asked of the file system alone, before anything slow is imported.

A hub id is nobody's file, so it passes. What is in a file that is there is found out by those who read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grpo_core.errors import Problem, UsageError
from grpo_core.plugins.references import parse_reference
from grpo_core.recipe.extras import GGUF_SUFFIX
from grpo_core.recipe.layers import Layer, display_path, get_value
from grpo_core.recipe.package_files import PACKAGE_PREFIX
from grpo_core.recipe.syntax import KeyPath
from grpo_core.regular_files import unusual_kind

__all__ = ["WEIGHT_FILES", "absent_files", "model_fault", "weights_fault"]

WEIGHT_FILES = ("*.safetensors", "pytorch_model*.bin")
"""Patterns of the files that hold a model's weights."""


def absent_files(layer: Layer) -> list[Problem]:
    """One problem for each model or dataset of these settings that is a path of this machine and not there."""
    return [
        Problem(path=display_path(path, layer.values), message=message, origin=layer.origin_of(path))
        for path, message in (*_absent_models(layer), *_absent_datasets(layer))
    ]


def model_fault(path: str) -> str | None:
    """Why a path cannot be a model, as far as names of files tell; None for a hub id too."""
    folder = Path(path)
    if os.path.isdir(path):
        return None if (folder / "config.json").is_file() else _no_config(folder)
    if path.lower().endswith(GGUF_SUFFIX):
        return None if os.path.isfile(path) else _not_there(path, "file")
    if os.path.exists(path):
        kind = unusual_kind(path) or "a file"
        return f"this is {kind}; give the folder that holds config.json and the weights, or a .gguf file"
    is_path = folder.is_absolute() or path.startswith((".", "~")) or path.count("/") > 1
    return _not_there(path, "folder") if is_path else None


def _not_there(path: str, wanted: str) -> str:
    kind = unusual_kind(path)
    if kind is None and os.path.islink(path):
        return "this is a symbolic link that leads nowhere"
    return f"this is {kind}, not a {wanted}" if kind else f"there is no such {wanted}"


def weights_fault(path: str) -> str | None:
    """Why a folder has no weights; None where it has, and for what is no folder."""
    folder = Path(path)
    if os.path.isdir(path) and not any(any(folder.glob(pattern)) for pattern in WEIGHT_FILES):
        return f"the folder has no weights: no file {' or '.join(WEIGHT_FILES)}"
    return None


def _no_config(folder: Path) -> str:
    for adapter in (folder, folder / "adapter"):
        if (adapter / "adapter_config.json").is_file():
            return (
                "the folder holds a LoRA adapter and no model: name its base model here, and the adapter by "
                f"--set trainer.lora.adapter={adapter}"
            )
    state = "has no config.json" if any(folder.iterdir()) else "is empty"
    return f"the folder {state}: it is not a model in Hugging Face layout"


def _absent_models(layer: Layer) -> Iterator[tuple[KeyPath, str]]:
    path = get_value(layer.values, ("model", "path"))
    is_found = isinstance(path, str) and not path.startswith(
        PACKAGE_PREFIX
    )  # else what is wrong with it is said already
    if isinstance(path, str) and is_found and (fault := model_fault(path) or weights_fault(path)):
        yield ("model", "path"), f"{path}: {fault}"
    for key in (("model", "tokenizer"), ("trainer", "lora", "adapter")):
        other = get_value(layer.values, key)
        if isinstance(other, str) and os.path.isabs(other) and not os.path.exists(other):
            yield key, f"{other}: there is no such file or folder"


def _absent_datasets(layer: Layer) -> Iterator[tuple[KeyPath, str]]:
    named: list[tuple[KeyPath, Any]] = [
        (path, get_value(layer.values, path)) for path in (("dataset", "use"), ("dataset", "evaluation"))
    ]
    mix = get_value(layer.values, ("dataset", "mix"))
    for place, entry in enumerate(mix if isinstance(mix, list) else ()):
        named.append((("dataset", "mix", place, "use"), get_value(entry, ("use",))))
    for path, text in named:
        file = _file_of(text) if isinstance(text, str) else None
        if file is not None and (fault := _dataset_fault(file)):
            yield path, f"{file}: {fault}"


def _dataset_fault(file: str) -> str | None:
    kind = unusual_kind(file)
    if kind is not None and kind != "a folder":
        return f"this is {kind}, which may have no end; give a file or a folder"
    return None if os.path.exists(file) else "there is no such file or folder"


def _file_of(text: str) -> str | None:
    """The path that a reference to a dataset leads to; None where it leads elsewhere, or is malformed."""
    try:
        reference = parse_reference(text)
    except UsageError:
        return None
    return reference.value if reference.form == "path" else reference.details.get("path")
