"""Low-rank adapters in a model: added fresh or from a folder, left out for the reference.

peft's layers are put into the model itself and nothing wraps it, so that whatever reads the model (rollout, policy
module, head) reads it as before. Their weights under plain names and as files are `lora_weights.py`'s.

The reference is the policy as the run began: the model without its adapter, or with a frozen copy of the adapter that
the run started from.
"""

from __future__ import annotations

import copy
import re
import textwrap
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from grpo_core.errors import Problem, RecipeError
from grpo_core.model.load import empty_model
from grpo_core.recipe.complaints import did_you_mean
from grpo_core.recipe.schema import LoraSettings, ModelSettings, TrainerSettings

if TYPE_CHECKING:
    from peft import LoraConfig

__all__ = [
    "ADAPTER",
    "PEFT_PREFIX",
    "add_adapter",
    "as_reference",
    "empty_adapted_model",
    "learning_rate_warning",
    "trainable_parameters",
]

ADAPTER, REFERENCE = "default", "reference"
"""peft's names of the adapter that is trained, and of the frozen copy of what it was."""
PEFT_PREFIX = "base_model.model."
"""What the names of weights begin with in peft's files."""
DEFAULT_RANK, DEFAULT_ALPHA = 16, 32.0
"""With alpha fixed and the product counted alpha / rank times, the best learning rate hardly depends on the rank."""
LOW_LEARNING_RATE = 2e-6
"""Up to here a learning rate is one for all weights; adapters learn best at about ten times that (Schulman and Thinking
Machines Lab 2025, LoRA Without Regret)."""
ALL_LINEAR = "all-linear"
INITS = (True, False, "gaussian", "orthogonal", "eva")
"""peft's ways to begin an adapter that leave the model's own weights alone."""
REASON_WIDTH = 240


def add_adapter(model: Any, lora: LoraSettings, *, seed: int, with_reference: bool = False) -> None:
    """Freeze every weight of the model and add the adapter, which alone is trained; the model's outputs stay as they
    were, unless the adapter starts from `lora.adapter`.

    `with_reference` keeps what `as_reference` needs. Raises `RecipeError` for targets that the model lacks and for an
    adapter that does not fit it.
    """
    if lora.adapter is None:
        _inject(model, _fresh(model, lora), ADAPTER, "targets", seed)
        return
    config, weights = _read_config(lora.adapter), _read_weights(lora.adapter)
    for name in (ADAPTER, REFERENCE) if with_reference else (ADAPTER,):
        _inject(model, copy.deepcopy(config), name, "adapter", seed)
        _set_weights(model, name, weights, lora.adapter)
    for layer in _layers(model):
        layer.set_adapter(ADAPTER)


def trainable_parameters(model: ModelSettings, lora: LoraSettings) -> int:
    """How many parameters the adapter has; from configs, without memory for a single weight. Raises `RecipeError` for
    what `add_adapter` would refuse before it reads weights."""
    adapted = empty_adapted_model(model, lora)
    return sum(parameter.numel() for parameter in adapted.parameters() if parameter.requires_grad)


def empty_adapted_model(model: ModelSettings, lora: LoraSettings) -> Any:
    """The model with its adapter, on the meta device. Raises as `trainable_parameters` does."""
    empty = empty_model(model)
    with torch.device("meta"):
        if lora.adapter is None:
            _inject(empty, _fresh(empty, lora), ADAPTER, "targets", seed=0)
            _require_narrow(empty, lora.rank)
        else:
            _inject(empty, _read_config(lora.adapter), ADAPTER, "adapter", seed=0)
    return empty


def learning_rate_warning(trainer: TrainerSettings) -> str | None:
    """What to tell a person about a learning rate at which an adapter hardly moves."""
    if trainer.lora is None or trainer.learning_rate > LOW_LEARNING_RATE:
        return None
    return (
        f"trainer.learning_rate is {trainer.learning_rate:g}, which is usual where all weights are trained; adapters "
        "learn best at about ten times that, 1e-5 to 1e-4"
    )


@contextmanager
def as_reference(model: nn.Module) -> Iterator[None]:
    """Inside, the model is the reference. For use without gradient."""
    layers = list(_layers(model))
    has_copy = REFERENCE in model.peft_config  # type: ignore[operator]
    try:
        for layer in layers:
            if has_copy:
                layer.set_adapter(REFERENCE, inference_mode=True)
            else:
                layer.enable_adapters(False)
        yield
    finally:
        for layer in layers:
            if has_copy:
                layer.set_adapter(ADAPTER)
            else:
                layer.enable_adapters(True)


def _fresh(model: Any, lora: LoraSettings) -> LoraConfig:
    from peft import LoraConfig

    outside = () if lora.vision else _outside_text(model)
    every = lora.targets in (None, ALL_LINEAR)
    linear = _linear_names(model, outside) if outside else ALL_LINEAR
    return LoraConfig(
        r=lora.rank or DEFAULT_RANK,
        lora_alpha=lora.alpha or DEFAULT_ALPHA,
        target_modules=linear if every else set(lora.targets or ()),
        exclude_modules=rf"(?:{'|'.join(map(re.escape, outside))})(?:\..*)?" if outside else None,
        modules_to_save=list(lora.modules_to_save) if lora.modules_to_save else None,
        task_type="CAUSAL_LM",
    )


def _outside_text(model: Any) -> tuple[str, ...]:
    """The parts of a vision-language model beside its text layers and its head, by name; none of any other model."""
    if not hasattr(model.config, "vision_config"):
        return ()
    embeddings, backbone = model.get_input_embeddings(), model.base_model
    prefix = next(name for name, module in model.named_modules() if module is backbone)
    return tuple(
        f"{prefix}.{name}"
        for name, part in backbone.named_children()
        if all(module is not embeddings for module in part.modules())
    )


def _linear_names(model: Any, outside: Collection[str]) -> set[str]:
    """The ends of the names of every linear layer but the head and those outside."""
    head = model.get_output_embeddings()
    return {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and module is not head and not name.startswith(_below(outside))
    }


def _below(names: Collection[str]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in names)


def _read_config(path: str) -> LoraConfig:
    from peft import LoraConfig, PeftConfig

    try:
        config = PeftConfig.from_pretrained(path)
    except (OSError, ValueError, TypeError, KeyError) as error:
        _fail("adapter", f"{path} holds no adapter in peft's layout: {_reason(error)}")
    if type(config) is not LoraConfig:
        _fail(
            "adapter",
            f"{path} is no LoRA adapter but one of the kind {getattr(config.peft_type, 'value', config.peft_type)}",
        )
    if config.init_lora_weights not in INITS or config.bias != "none" or config.layer_replication:
        _fail("adapter", f"{path} changes weights of the model itself, beside those of its adapter")
    config.lora_dropout, config.inference_mode, config.init_lora_weights = 0.0, False, True
    return config


def _read_weights(path: str) -> dict[str, Tensor]:
    from peft import load_peft_weights

    try:
        weights: dict[str, Tensor] = load_peft_weights(path, device="cpu")
    except Exception as error:  # noqa: BLE001 - safetensors, pickle and the hub each have errors of their own
        _fail("adapter", f"the weights of {path} cannot be read: {_reason(error)}")
    return {name.removeprefix(PEFT_PREFIX): weight for name, weight in weights.items()}


def _set_weights(model: Any, name: str, weights: Mapping[str, Tensor], path: str) -> None:
    from peft import set_peft_model_state_dict

    try:
        result = set_peft_model_state_dict(model, dict(weights), adapter_name=name)
    except (RuntimeError, KeyError) as error:
        _fail("adapter", f"{path} does not fit {type(model).__name__}: {_reason(error)}")
    expected = {key for key in model.state_dict() if f".{name}." in key or key.endswith(f".{name}")}
    missing = sorted(expected.intersection(result.missing_keys))
    if missing or result.unexpected_keys:
        odd = f"lacks {missing[0]}" if missing else f"has {min(result.unexpected_keys)}, which is none of its weights"
        _fail("adapter", f"{path} does not fit {type(model).__name__}: it {odd}")


def _inject(model: Any, config: LoraConfig, name: str, key: str, seed: int) -> None:
    """`key` is the setting that is at fault when this fails."""
    from peft import inject_adapter_in_model

    _require_names(model, config, key)
    is_tied = _are_one(model)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what peft warns of is refused below, or meant
        torch.manual_seed(seed)
        try:
            inject_adapter_in_model(config, model, name)
        except (ValueError, TypeError, NotImplementedError) as error:
            _fail(key, _reason(error))
    _require_plain_layers(model, key)
    if is_tied and any(map(_is_adapted, (model.get_input_embeddings(), model.get_output_embeddings()))):
        _fail(
            key,
            "in this model one weight is both input embedding and head, and an adapter of one of them would part them; "
            "leave embeddings and head out",
        )


def _require_narrow(model: nn.Module, rank: int | None) -> None:
    """Refuse a rank that is of no use in any layer; one that is too much for some of them is everyday."""
    sides = [min(layer.weight.shape) for layer in _layers(model) if hasattr(layer, "lora_A")]
    if rank is not None and sides and rank > max(sides):
        _fail(
            "rank",
            f"{rank} is more than {max(sides)}, the smaller side of the widest layer with an adapter: a product of "
            "that rank is any matrix already",
        )


def _require_names(model: nn.Module, config: LoraConfig, key: str) -> None:
    """Each target must be there: peft takes it for enough when one of them is."""
    names = [name for name, _ in model.named_modules()]
    excluded = config.exclude_modules if isinstance(config.exclude_modules, str) else None
    plain = {
        name.rpartition(".")[2]: None
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | nn.Embedding | Conv1D)
    }
    targets: Collection[str] = () if isinstance(config.target_modules, str) else config.target_modules or ()
    for wanted, where in ((targets, key), (config.modules_to_save or (), "modules_to_save")):
        for target in sorted(wanted):
            found = [name for name in names if name == target or name.endswith(f".{target}")]
            if excluded and where == "targets" and found and all(re.fullmatch(excluded, name) for name in found):
                message = f"'{target}' is in the vision tower alone; trainer.lora.vision: true looks there too"
                _fail(key, message)
            if not found:
                message = f"{type(model).__name__} has no module '{target}'; {did_you_mean(target, list(plain))}"
                _fail(key if key == "adapter" else where, message)


def _require_plain_layers(model: nn.Module, key: str) -> None:
    """Only layers whose merged weight is the weight plus alpha / rank times a product."""
    from peft.tuners.lora import Embedding, Linear, LoraLayer
    from peft.utils.other import ModulesToSaveWrapper

    for layer in _layers(model):
        if isinstance(layer, ModulesToSaveWrapper):
            continue
        is_plain = type(layer) in (Linear, Embedding) and isinstance(layer, LoraLayer)
        if not is_plain or layer.lora_variant or any(layer.lora_bias.values()):
            base = type(getattr(layer, "base_layer", layer)).__name__
            _fail(key, f"an adapter of the kind of {type(layer).__name__} on {base} is not plain LoRA, and no other is")


def _layers(model: nn.Module) -> Iterator[Any]:
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import AuxiliaryTrainingWrapper

    return (module for module in model.modules() if isinstance(module, BaseTunerLayer | AuxiliaryTrainingWrapper))


def _is_adapted(module: nn.Module) -> bool:
    return any(module is layer for layer in _layers(module))


def _are_one(model: Any) -> bool:
    head = model.get_output_embeddings()
    return head is not None and model.get_input_embeddings().weight is head.weight


def _reason(error: Exception) -> str:
    return textwrap.shorten(str(error), REASON_WIDTH, placeholder=" …") or type(error).__name__


def _fail(key: str, message: str) -> NoReturn:
    raise RecipeError([Problem(path=f"trainer.lora.{key}", message=message)]) from None
