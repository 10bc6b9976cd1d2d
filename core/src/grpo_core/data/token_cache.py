"""The tokens of a run's prompts, kept between runs: encoding them is most of the work of preparing a large dataset.

What is kept is found by all that it depends on: the texts themselves, the tokenizer's whole content, and the versions
of the libraries. So it cannot be stale: a changed row, preprocessor, option or chat template gives other texts, and
other texts are not found. Rows are read and samples made anew each time: reading them back would take as long.

Files lie in `$XDG_CACHE_HOME/grpo-core` (`~/.cache/grpo-core`), or in `GRPO_CACHE_DIR`; an empty `GRPO_CACHE_DIR` turns
this off. What was not used for longest is removed when they are more than 2 GiB together.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from transformers import PreTrainedTokenizerBase

from grpo_core.data.progress import tracked
from grpo_core.model.tokenizer import encode

__all__ = ["cache_folder", "encode_cached"]

logger = logging.getLogger("grpo_core")

LEAST_CHARACTERS = 1_000_000
"""Fewer are encoded in about a second."""
_MOST_BYTES = 2 * 2**30
_BATCH_TEXTS = 1000
_FORMAT = "1"
_SUFFIX = ".safetensors"

Tokens = list[tuple[int, ...]]


def encode_cached(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> Tokens:
    """The tokens of rendered prompts, as `encode` gives them; kept for the next run when there are many.

    A file that is damaged is made anew, and one that cannot be written is done without; both are warned of.
    """
    folder = cache_folder()
    if folder is None or sum(map(len, texts)) < LEAST_CHARACTERS or not _is_known(tokenizer):
        return _encode(texts, tokenizer)
    file = folder / "tokens" / f"{_key(texts, tokenizer)}{_SUFFIX}"
    kept = _read(file, len(texts))
    if kept is not None:
        return kept
    tokens = _encode(texts, tokenizer)
    _write(file, tokens)
    return tokens


def cache_folder() -> Path | None:
    """Where things are kept between runs; None: nowhere."""
    chosen = os.environ.get("GRPO_CACHE_DIR")
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "grpo-core"


def _encode(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> Tokens:
    starts = range(0, len(texts), _BATCH_TEXTS)
    batches = (encode(texts[start : start + _BATCH_TEXTS], tokenizer) for start in starts)
    return [tokens for batch in tracked(batches, total=len(starts), what="encoding prompts") for tokens in batch]


def _is_known(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether all that decides its tokens can be seen: not so where a model brings Python code of its own."""
    return hasattr(tokenizer, "backend_tokenizer") and type(tokenizer).__module__.startswith("transformers.")


def _key(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> str:
    """The SHA-256, in hexadecimal, of everything that the tokens depend on."""
    made_by = {
        "format": _FORMAT,
        "class": type(tokenizer).__qualname__,
        "versions": [version("tokenizers"), version("transformers")],
        "split_special_tokens": tokenizer.split_special_tokens,
    }
    digest = hashlib.sha256(json.dumps(made_by).encode())
    digest.update(tokenizer.backend_tokenizer.to_str().encode("utf-8", "surrogatepass"))
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def _read(file: Path, count: int) -> Tokens | None:
    """What was kept; None when there is nothing, or it is damaged."""
    if not file.is_file():
        return None
    try:
        with safe_open(file, framework="numpy") as opened:
            ids, lengths, digest = opened.get_tensor("ids"), opened.get_tensor("lengths"), opened.metadata()["digest"]
        if _digest(ids, lengths) != digest or len(lengths) != count:
            raise ValueError("its content is not what was written")
        os.utime(file)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("the cache file %s is damaged and made anew: %s", file, error)
        return None
    shared = list(range(int(ids.max(initial=0)) + 1))  # one object for each id, as `encode` does
    ends = np.cumsum(lengths)
    return [
        tuple(map(shared.__getitem__, ids[end - length : end].tolist()))
        for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]


def _write(file: Path, tokens: Tokens) -> None:
    """Keep tokens for the next run: written aside and renamed, so that no half file is ever found."""
    lengths = np.array([len(each) for each in tokens], dtype=np.int64)
    ids = np.fromiter((token for each in tokens for token in each), dtype=np.int32, count=int(lengths.sum()))
    aside = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, aside = tempfile.mkstemp(dir=file.parent, prefix=".partial-")
        os.close(descriptor)
        save_file({"ids": ids, "lengths": lengths}, aside, metadata={"digest": _digest(ids, lengths)})
        os.replace(aside, file)
        _remove_old(file.parent)
    except (OSError, SafetensorError) as error:
        logger.warning("the encoded prompts are not kept for the next run: %s", error)
        if aside is not None:
            Path(aside).unlink(missing_ok=True)


def _digest(ids: np.ndarray, lengths: np.ndarray) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(ids).tobytes())
    digest.update(np.ascontiguousarray(lengths).tobytes())
    return digest.hexdigest()


def _remove_old(folder: Path) -> None:
    """Remove the files that were not used for longest, until the rest is small enough."""
    files = sorted(folder.glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True)
    total = 0
    for file in files:
        total += file.stat().st_size
        if total > _MOST_BYTES:
            file.unlink(missing_ok=True)
