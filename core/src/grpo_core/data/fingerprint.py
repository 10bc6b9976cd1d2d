"""A fingerprint of the samples, so that a resumed run can refuse data that changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence, Set

from grpo_core.types import Sample

__all__ = ["fingerprint"]


def fingerprint(samples: Iterable[Sample]) -> str:
    """The SHA-256, in hexadecimal, of ids, prompts, images and columns, in order. Images that are paths count by
    their path."""
    digest = hashlib.sha256()
    for sample in samples:
        content = {
            "id": sample.id,
            "messages": [[message.role, message.content] for message in sample.messages],
            "images": [image.source for image in sample.images],
            "columns": sample.columns,
        }
        digest.update(json.dumps(_canonical(content), ensure_ascii=True, sort_keys=True).encode("ascii"))
        digest.update(b"\n")
    return digest.hexdigest()


def _canonical(value: object) -> object:
    """The value in what JSON knows, distinct values staying distinct: the text "1" is not the number 1."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, Mapping):
        return {json.dumps(_canonical(key)): _canonical(item) for key, item in value.items()}
    if isinstance(value, Set):
        return {"set": sorted(json.dumps(_canonical(item), sort_keys=True) for item in value)}
    if isinstance(value, Sequence):
        return [_canonical(item) for item in value]
    if callable(tolist := getattr(value, "tolist", None)):
        return {"array": _canonical(tolist())}
    return {type(value).__name__: str(value)}
