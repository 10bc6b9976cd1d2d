"""Loads the processor of a vision-language model, with torchvision and without.

transformers has image processors on PIL. A processor's part for videos, all of which need torchvision, is left out.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any, NoReturn

import transformers
from transformers.utils import cached_file

from grpo_core.errors import Problem, RecipeError
from grpo_core.model.json_files import model_json
from grpo_core.recipe.schema import ModelSettings

__all__ = ["copy_processor", "load_processor"]

PROCESSOR_FILES = (
    *("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json"),
    *("chat_template.json", "chat_template.jinja"),
)
_REASON_WIDTH = 240


def copy_processor(model: ModelSettings, directory: Path) -> None:
    """Copy the files of a model's processor, as they are."""
    for name in PROCESSOR_FILES:
        file = _file_of(model, name)
        if file is not None:
            shutil.copyfile(file, directory / name)


def load_processor(model: ModelSettings) -> Any:
    """The processor of a vision-language model; raises `RecipeError` when none loads, or a package that it
    needs is missing."""
    where: dict[str, Any] = {
        "pretrained_model_name_or_path": model.path,
        "revision": None if os.path.isdir(model.path) else model.revision,
        "local_files_only": os.path.isdir(model.path),
    }
    try:
        made = _processor_class(model)
        loaded = made.from_pretrained(trust_remote_code=model.trust_remote_code, **where)
    except RecipeError:
        raise
    except Exception as error:  # noqa: BLE001 - each family has its own way to refuse a file or to miss a library
        _fail(model, _missing_library(error) or f"its image processor cannot be loaded: {_reason(error)}")
    if not isinstance(getattr(loaded, "image_token", None), str) or not hasattr(loaded, "image_processor"):
        _fail(model, f"its processor is a {type(loaded).__name__}, which has no placeholder for images")
    return loaded


def _processor_class(model: ModelSettings) -> Any:
    name = next(
        (
            content["processor_class"]
            for file in ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
            if isinstance((content := model_json(model, file)).get("processor_class"), str)
        ),
        None,
    )
    if name is None:
        return transformers.AutoProcessor
    found = getattr(transformers, name, None)
    if found is None:
        _fail(model, f"transformers {transformers.__version__} has no processor {name!r}, which the model's files name")
    return _without_video(found)


def _without_video(processor_class: Any) -> Any:
    """The class able to load without its video processor, all of which need torchvision."""
    names = list(processor_class.get_attributes())
    if "video_processor" not in names:
        return processor_class
    place = names.index("video_processor")

    class WithoutVideo(processor_class):  # type: ignore[misc]  # a class that the model's files name
        video_processor = None

        @classmethod
        def get_attributes(cls) -> list[str]:
            return [name for name in names if name != "video_processor"]

        @classmethod
        def from_args_and_dict(cls, args: Any, processor_dict: Any, **kwargs: Any) -> Any:
            return super().from_args_and_dict([*args[:place], None, *args[place:]], processor_dict, **kwargs)

    WithoutVideo.__name__ = processor_class.__name__
    return WithoutVideo


def _missing_library(error: Exception) -> str | None:
    """What to install, where a family's processor asks for a package that is not here."""
    if not isinstance(error, ImportError):
        return None
    named = re.search(r"pip install ([\w.\-]+)", str(error))
    wanted = named.group(1) if named else (getattr(error, "name", None) or None)
    return None if wanted is None else f"its processor needs the package {wanted}: pip install {wanted}"


def _file_of(model: ModelSettings, name: str) -> str | None:
    found: str | None = cached_file(
        model.path,
        name,
        revision=None if os.path.isdir(model.path) else model.revision,
        local_files_only=True,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return found


def _reason(error: Exception) -> str:
    return textwrap.shorten(str(error), _REASON_WIDTH, placeholder=" …") or type(error).__name__


def _fail(model: ModelSettings, message: str) -> NoReturn:
    raise RecipeError([Problem(path="model.path", message=f"{model.path}: {message}")]) from None
