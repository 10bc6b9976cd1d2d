"""Models in one GGUF file, as llama.cpp has them: where transformers finds their parts.

Weights are dequantised as they are loaded; what is trained, checkpointed and exported is a plain model in Hugging Face
layout. To read the metadata of a large vocabulary takes seconds, so config and tokenizer are read once a process.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import lru_cache
from pathlib import Path
from typing import Any

import transformers

from grpo_core.recipe.extras import GGUF_SUFFIX

__all__ = ["gguf_config", "gguf_end_ids", "gguf_tokenizer", "gguf_weights", "is_gguf", "without_gguf_bar"]

END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
"""Of a text, of a turn, of a message: where one of them comes first, a completion ends."""


def is_gguf(path: str) -> bool:
    """Whether a model is a GGUF file, by its name."""
    return path.lower().endswith(GGUF_SUFFIX)


def gguf_weights(path: str) -> dict[str, Any]:
    """What `from_pretrained` is told, to load plain weights from the file."""
    return {**_where(path), "quantization_config": transformers.GgufConfig(dequantize=True)}


def gguf_config(path: str) -> Any:
    """The model's `PreTrainedConfig`, from the file's metadata."""
    return copy.deepcopy(_read_config(path, Path(path).stat().st_mtime_ns))


def gguf_tokenizer(path: str) -> Any:
    """The tokenizer, from the file's metadata."""
    return copy.deepcopy(_read_tokenizer(path, Path(path).stat().st_mtime_ns))


def gguf_end_ids(path: str) -> frozenset[int]:
    """Every token that ends a completion, by the file's metadata."""
    from transformers.integrations.gguf import read_gguf_metadata  # imports torch, which a tokenizer can do without

    metadata, _ = read_gguf_metadata(path)
    found = (metadata.get(f"tokenizer.ggml.{key}") for key in END_KEYS)
    return frozenset(token for token in found if isinstance(token, int))


@contextmanager
def without_gguf_bar() -> Iterator[None]:
    """Keep transformers from drawing the one bar that its own switch does not reach."""
    with redirect_stderr(io.StringIO()):
        yield


def _where(path: str) -> dict[str, Any]:
    file = Path(path)
    return {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name, "local_files_only": True}


@lru_cache(maxsize=4)
def _read_config(path: str, changed_ns: int) -> Any:
    return transformers.AutoConfig.from_pretrained(**_where(path))


@lru_cache(maxsize=4)
def _read_tokenizer(path: str, changed_ns: int) -> Any:
    return transformers.AutoTokenizer.from_pretrained(**_where(path))
