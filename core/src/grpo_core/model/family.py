"""Which of transformers' classes a model is made with: one that reads text, or one that reads images too."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import transformers
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)

__all__ = ["auto_class", "family_fault", "names_vision", "reads_images"]

_ENCODED = "mm_encoder_outputs"
"""The argument that takes what the vision tower made of images, so that it need not run again."""
_TOKEN_TYPES = "token_type_ids"
"""An argument of families whose text attention looks both ways inside an image."""


def auto_class(config: Any) -> Any:
    """The `AutoModel…` that makes a model of this config."""
    return transformers.AutoModelForImageTextToText if reads_images(config) else transformers.AutoModelForCausalLM


def reads_images(config: Any) -> bool:
    """Whether it is the config of a vision-language model."""
    classes = _classes(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, config)
    if not classes or not hasattr(config, "vision_config"):
        return False
    architectures = getattr(config, "architectures", None)
    if architectures:
        return bool(classes.intersection(architectures))
    return not _classes(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, config)


def names_vision(content: Mapping[str, Any]) -> bool:
    """Whether a config.json may be that of a vision-language model, by what is written in it."""
    return "vision_config" in content or content.get("model_type") in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES


def family_fault(config: Any) -> str | None:
    """Why no model of this config can be trained; None: it is a causal language model, of text or of images too."""
    if "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {}):
        return None
    if reads_images(config):
        return _vision_fault(config)
    causal = _classes(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, config)
    if not causal:
        return f"a model of type {config.model_type!r} is not a causal language model"
    architectures = getattr(config, "architectures", None) or sorted(causal)
    if not causal.intersection(architectures):
        return f"it holds a {architectures[0]}, not a causal language model ({', '.join(sorted(causal))})"
    return None


def _vision_fault(config: Any) -> str | None:
    made = transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)]
    arguments = inspect.signature(made.forward).parameters
    if _ENCODED not in arguments:
        return f"a {made.__name__} cannot be given images that are encoded already ({_ENCODED}), once for a group"
    if _TOKEN_TYPES in arguments:
        return f"a {made.__name__} attends both ways inside an image, which training does not support"
    return None


def _classes(names: Any, config: Any) -> set[str]:
    found = names.get(config.model_type, ())
    return {found} if isinstance(found, str) else set(found)
