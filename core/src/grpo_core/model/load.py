"""Loads a causal language model, of text or of images too, and answers questions about it from its config alone.

A model is a folder in Hugging Face layout, a GGUF file (`model/gguf.py`) or a hub id. Not the tokenizer
(`model/tokenizer.py`) and not how logits come from hidden states (`model/head.py`). A folder or file never touches the
network. Dropout is off everywhere: the policy that is trained is the one that sampled.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import torch
import transformers
from safetensors import SafetensorError
from torch import nn
from torch.nn.modules.dropout import _DropoutNd
from transformers.utils import logging as transformers_logging

from grpo_core.errors import Problem, RecipeError
from grpo_core.model.family import auto_class, family_fault
from grpo_core.model.gguf import gguf_config, gguf_weights, is_gguf, without_gguf_bar
from grpo_core.model.json_files import means_sampling, model_json
from grpo_core.model.weight_files import weight_files_fault
from grpo_core.plugins.faults import describe
from grpo_core.recipe.existence import model_fault, weights_fault
from grpo_core.recipe.schema import ModelSettings

__all__ = [
    "context_length",
    "count_parameters",
    "disable_dropout",
    "empty_model",
    "load_model",
    "model_config",
    "require_sound_weights",
    "require_weights",
    "vocabulary_size",
    "without_progress_bars",
]

CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
MOST_SIZES = {
    "vocab_size": 10**8,
    "hidden_size": 10**6,
    "num_hidden_layers": 10**4,
    "num_attention_heads": 10**5,
    "num_key_value_heads": 10**5,
    "head_dim": 10**5,
}
"""Beyond any model that there is, by far; a model of more layers would be made for hours before it fails."""
SHOWN_NAMES = 3
REASON_WIDTH = 240


def load_model(model: ModelSettings, dtype: torch.dtype, *, attention: str | None = None) -> Any:
    """Load the `PreTrainedModel` on the CPU, in eval mode, every weight in `dtype` and no dropout anywhere.

    `attention` is transformers' name of an implementation; None: the one transformers chooses for the model. Raises
    `RecipeError` when the path holds no complete causal language model.
    """
    config = model_config(model)
    where = gguf_weights(model.path) if is_gguf(model.path) else _where(model)
    try:
        bars = without_gguf_bar() if is_gguf(model.path) else nullcontext()
        with _own_code(model), without_progress_bars(), bars:
            loaded, info = auto_class(config).from_pretrained(
                config=config,
                dtype=dtype,
                attn_implementation=attention,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # so that they can be named below
                trust_remote_code=model.trust_remote_code,
                **where,
            )
    except (OSError, ValueError, RuntimeError, ImportError, SafetensorError) as error:
        _fail(model, f"the weights cannot be loaded: {_reason(error)}")
    _require_all_weights(model, info)
    if loaded.generation_config is not None and means_sampling(loaded.generation_config):
        loaded.generation_config.do_sample = True  # or it could not be written with the trained model
    disable_dropout(loaded)
    if getattr(loaded.config, "rescale_every", 0):  # RWKV divides weights in place by its mode, those it exports too
        loaded.config.rescale_every = 0
    return loaded.eval()


def model_config(model: ModelSettings) -> Any:
    """The model's `PreTrainedConfig`, read without its weights; `RecipeError` when it is no causal language model's."""
    if fault := model_fault(model.path):
        _fail(model, fault)
    if os.path.isdir(model.path):  # before a config is made of it, which takes as long as its sizes are large
        written = model_json(model, "config.json")
        for section in (written, written.get("text_config")):
            _require_numbers(model, section if isinstance(section, dict) else {})
    config = _read_gguf_config(model) if is_gguf(model.path) else _read_config(model)
    if fault := family_fault(config):
        _fail(model, fault)
    _require_sizes(model, config)
    return config


def context_length(model: ModelSettings) -> int | None:
    """How many tokens, prompt and completion together, the model was made for; None when its config does not say."""
    config = model_config(model).get_text_config()
    lengths = (getattr(config, name, None) for name in CONTEXT_NAMES)
    return next((length for length in lengths if isinstance(length, int) and length > 0), None)


def count_parameters(model: ModelSettings) -> int:
    """How many parameters the model has, tied ones once; from its config, without memory for a single weight."""
    return sum(parameter.numel() for parameter in empty_model(model).parameters())


def empty_model(model: ModelSettings) -> Any:
    """The `PreTrainedModel` on the meta device: every weight has its name and shape and none has memory."""
    config = model_config(model)
    try:
        with _own_code(model), torch.device("meta"):
            return auto_class(config).from_config(config, trust_remote_code=model.trust_remote_code)
    except RecipeError:
        raise
    except Exception as error:  # noqa: BLE001 - what a family makes of sizes that do not fit is its own
        _fail(model, f"no model can be made of the sizes in its {_config_file(model)}: {_reason(error)}")


def require_weights(model: ModelSettings) -> None:
    """Raise `RecipeError` when a folder has no file of weights."""
    if fault := weights_fault(model.path):
        _fail(model, fault)


def require_sound_weights(model: ModelSettings) -> None:
    """Raise `RecipeError` for what the files of weights in a folder say of themselves that cannot be loaded, or not be
    trained; no weight is read."""
    if not os.path.isdir(model.path):
        return
    shapes = {name: tuple(weight.shape) for name, weight in empty_model(model).named_parameters()}
    if fault := weight_files_fault(Path(model.path), shapes):
        _fail(model, fault)


def vocabulary_size(model: ModelSettings) -> int | None:
    """How many tokens the model has embeddings for; None when its config does not say."""
    size = getattr(model_config(model).get_text_config(), "vocab_size", None)
    return size if isinstance(size, int) else None


def disable_dropout(model: nn.Module) -> None:
    """Set every dropout probability of modules and config to 0, so that training mode computes what eval mode does."""
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
        _zero_dropout_floats(vars(module))
    config = getattr(model, "config", None)
    if config is not None:
        _zero_dropout_floats(vars(config))
        for part in (config.get_text_config(), getattr(config, "vision_config", None)):
            _zero_dropout_floats({} if part is None else vars(part))


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Keep transformers from drawing bars over the run's own console."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def _zero_dropout_floats(attributes: dict[str, Any]) -> None:
    # Attention modules keep their probability as a plain float; routers call theirs jitter.
    for name, value in attributes.items():
        if isinstance(value, float) and ("drop" in name or "jitter" in name):
            attributes[name] = 0.0


def _read_config(model: ModelSettings) -> Any:
    try:
        with _own_code(model):
            return transformers.AutoConfig.from_pretrained(trust_remote_code=model.trust_remote_code, **_where(model))
    except RecipeError:
        raise
    except Exception as error:  # noqa: BLE001 - each family has its own way to refuse a value
        if "trust_remote_code" in str(error):
            _fail(
                model, "needs Python code that it brings; read that code, then allow it: model.trust_remote_code=true"
            )
        _fail(model, f"its config.json cannot be read: {_reason(error)}")


@contextmanager
def _own_code(model: ModelSettings) -> Iterator[None]:
    """Where a model may bring code of its own, whatever that raises is a fault of the model."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if not model.trust_remote_code or isinstance(error, RecipeError):
            raise
        _fail(model, f"it cannot be loaded with the code that it brings: {describe(error)}")


def _read_gguf_config(model: ModelSettings) -> Any:
    try:
        return gguf_config(model.path)
    except Exception as error:  # noqa: BLE001 - what a damaged file raises depends on where it is damaged
        _fail(model, f"it cannot be read as a GGUF file: {_reason(error)}")


def _where(model: ModelSettings) -> dict[str, Any]:
    is_folder = os.path.isdir(model.path)
    return {
        "pretrained_model_name_or_path": model.path,
        "revision": None if is_folder else model.revision,
        "local_files_only": is_folder,
    }


def _require_sizes(model: ModelSettings, config: Any) -> None:
    """Refuse sizes that no model has: one would be made of them, slowly, or fail somewhere inside."""
    text, file = config.get_text_config(), _config_file(model)
    _require_numbers(model, {name: getattr(text, name, None) for name in MOST_SIZES})
    heads, shared = (getattr(text, name, None) for name in ("num_attention_heads", "num_key_value_heads"))
    if isinstance(heads, int) and isinstance(shared, int) and heads % shared:
        message = f"{heads} num_attention_heads, which {shared} num_key_value_heads do not divide"
        _fail(model, f"its {file} has {message}")


def _require_numbers(model: ModelSettings, sizes: Mapping[str, Any]) -> None:
    for name, most in MOST_SIZES.items():
        size = sizes.get(name)
        if isinstance(size, int) and not 1 <= size <= most:  # some families have a list, with one for each layer
            message = f"has the {name} {size}; a model has a whole number from 1 to {most:,}"
            _fail(model, f"its {_config_file(model)} {message}")


def _config_file(model: ModelSettings) -> str:
    return "header" if is_gguf(model.path) else "config.json"


def _require_all_weights(model: ModelSettings, info: dict[str, Any]) -> None:
    for name, in_files, in_config in sorted(info["mismatched_keys"]):
        _fail(model, f"{name} has the shape {list(in_files)} in its files and {list(in_config)} by its config.json")
    missing = sorted(info["missing_keys"])
    if missing:
        shown = ", ".join(missing[:SHOWN_NAMES]) + (", …" if len(missing) > SHOWN_NAMES else "")
        _fail(model, f"its files lack {len(missing)} weights of the model: {shown}; random ones would take their place")


def _reason(error: Exception) -> str:
    return textwrap.shorten(str(error), REASON_WIDTH, placeholder=" …") or type(error).__name__


def _fail(model: ModelSettings, message: str) -> NoReturn:
    raise RecipeError([Problem(path="model.path", message=f"{model.path}: {message}")]) from None
