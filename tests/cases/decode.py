"""What a case spells in JSON, as the values that are meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

__all__ = ["completion_text", "decoded"]


def decoded(value: Any) -> Any:
    """Arrays, tensors and floats that JSON cannot hold, out of their `__…__` objects."""
    match value:
        case {"__numpy__": items}:
            return np.array(items)
        case {"__numpy_float32__": items}:
            return [np.float32(item) for item in items]
        case {"__torch__": items}:
            return torch.tensor(items)
        case {"__torch_scalars__": items}:
            return [torch.tensor(item) for item in items]
        case {"__float__": text}:
            return float(text)
        case dict():
            return {key: decoded(item) for key, item in value.items()}
        case list():
            return [decoded(item) for item in value]
    return value


def completion_text(case: Mapping[str, Any]) -> str:
    """The completion as the text that rewards get, also where a case gives messages or a repetition."""
    if "completion_repeat" in case:
        repeat = case["completion_repeat"]
        return repeat["prefix"] + repeat["unit"] * repeat["times"] + repeat["suffix"]
    completion = case["completion"]
    if isinstance(completion, str):
        return completion
    return "".join(_content(message.get("content")) for message in completion or ())


def _content(content: str | list[Mapping[str, Any]] | None) -> str:
    """A message's text: plain, in parts, or none."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content or ""
