"""The JSON files beside a model's weights: config.json and generation_config.json, from a folder or the hub's cache."""

from __future__ import annotations

import json
import os
import textwrap
from typing import Any, NoReturn

from transformers import GenerationConfig
from transformers.utils import cached_file

from grpo_core.errors import Problem, RecipeError
from grpo_core.model.gguf import is_gguf
from grpo_core.recipe.schema import ModelSettings
from grpo_core.regular_files import read_text

__all__ = ["GENERATION_FILE", "generation_warning", "means_sampling", "model_json"]

GENERATION_FILE = "generation_config.json"
_REASON_WIDTH = 240


def model_json(model: ModelSettings, name: str) -> dict[str, Any]:
    """The content of a file of the model; empty where it is not there. Raises `RecipeError` that names it for one that
    cannot be read."""
    path = cached_file(
        model.path,
        name,
        revision=model.revision,
        local_files_only=os.path.isdir(model.path),
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    if path is None:
        return {}
    try:
        content = json.loads(read_text(path))
    except OSError as error:
        _fail(model, f"its {name} cannot be read: {error.strerror}")
    except (ValueError, RecursionError) as error:
        _fail(model, f"its {name} cannot be read: it is not a valid JSON file: {error}")
    if not isinstance(content, dict):
        _fail(model, f"its {name} holds a {type(content).__name__} and no object with settings")
    return content


def generation_warning(model: ModelSettings) -> str | None:
    """What to tell a person about a generation_config.json that transformers would refuse to write with the trained
    model; raises `RecipeError` for one that nothing can be made of."""
    content = {} if is_gguf(model.path) else model_json(model, GENERATION_FILE)
    try:
        config = GenerationConfig.from_dict(content)
        if not means_sampling(config):
            config.validate(strict=True)
            return None
    except Exception as error:  # noqa: BLE001 - what is wrong in it decides what is raised
        reason = textwrap.shorten(str(error), _REASON_WIDTH, placeholder=" …")
        _fail(model, f"its {GENERATION_FILE} is not sound, and could not be written with the model: {reason}")
    return (
        f"the model's {GENERATION_FILE} has settings of sampling and no do_sample: true, so transformers would not "
        "write it; that of the exported model says do_sample: true"
    )


def means_sampling(config: GenerationConfig) -> bool:
    """Whether settings of sampling without `do_sample` are all that is wrong with it."""
    return not _is_sound(config) and _is_sound(GenerationConfig.from_dict(config.to_dict() | {"do_sample": True}))


def _is_sound(config: GenerationConfig) -> bool:
    try:
        config.validate(strict=True)
    except ValueError:
        return False
    return True


def _fail(model: ModelSettings, message: str) -> NoReturn:
    raise RecipeError([Problem(path="model.path", message=f"{model.path}: {message}")]) from None
