"""The weights of a model with an adapter: merged, under the names of the plain model; and as files.

    adapter/adapter_config.json  adapter/adapter_model.safetensors      peft's layout
    config.json  model.safetensors                                      the whole model, adapter merged in

Merged weights exist one at a time: W + (alpha / rank) B A, computed in fp32 and rounded once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from grpo_core.model.lora import ADAPTER, PEFT_PREFIX

__all__ = ["ADAPTER_FOLDER", "export", "merged_weights", "write_adapter"]

ADAPTER_FOLDER = "adapter"

Whole = Callable[[Tensor], Tensor]
"""Gives the whole of a tensor that may be spread over processes."""


def merged_weights(model: nn.Module, whole: Whole = Tensor.detach) -> Iterator[tuple[str, Tensor]]:
    """Every weight and saved buffer as (plain Hugging Face name, tensor); tied ones once, under the first name."""
    from peft.tuners.lora import LoraLayer
    from peft.utils.other import ModulesToSaveWrapper

    kinds = (LoraLayer, ModulesToSaveWrapper)
    layers: dict[str, Any] = {name: module for name, module in model.named_modules() if isinstance(module, kinds)}
    for name, tensor in _saved(model):
        owner = _owner(name, layers)
        if owner is None:
            yield name, whole(tensor)
            continue
        layer, inner = layers[owner], name.removeprefix(f"{owner}.")
        trained, base = f"modules_to_save.{ADAPTER}.", "base_layer."
        if isinstance(layer, ModulesToSaveWrapper):
            if inner.startswith(trained):
                yield f"{owner}.{inner.removeprefix(trained)}", whole(tensor)
        elif inner == f"{base}weight":
            yield f"{owner}.weight", _merged(whole(tensor), layer, whole)
        elif inner.startswith(base):
            yield f"{owner}.{inner.removeprefix(base)}", whole(tensor)


def export(model: Any, directory: Path | None, *, base: str, merge: bool, whole: Whole = Tensor.detach) -> None:
    """Write the adapter into `adapter/`, and where `merge` the whole model, with copies of its adapted weights on the
    CPU. `base` is the path or id of the model that the adapter belongs to. A process that only helps to gather what is
    spread has no directory."""
    write_adapter(model, directory and directory / ADAPTER_FOLDER, base, whole)
    if merge:
        merged = {name: tensor.cpu() for name, tensor in merged_weights(model, whole) if directory is not None}
        if directory is not None:
            model.save_pretrained(directory, state_dict=merged)


def write_adapter(model: Any, directory: Path | None, base: str, whole: Whole = Tensor.detach) -> None:
    """Write the adapter alone, in peft's layout; as `export` for a process without a directory."""
    from peft import get_peft_model_state_dict

    config = copy.deepcopy(model.peft_config[ADAPTER])
    config.base_model_name_or_path, config.inference_mode = base, True
    weights = get_peft_model_state_dict(model, adapter_name=ADAPTER, save_embedding_layers=False)
    plain = {f"{PEFT_PREFIX}{name}": whole(tensor).cpu().contiguous() for name, tensor in weights.items()}
    if directory is None:
        return
    directory.mkdir(parents=True, exist_ok=True)
    if isinstance(config.target_modules, set):  # peft would write it in an order that differs from process to process
        config.target_modules = sorted(config.target_modules)
    config.save_pretrained(directory)
    save_file(plain, directory / "adapter_model.safetensors", metadata={"format": "pt"})


def _saved(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    saved = model.state_dict().keys()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in saved)


def _owner(name: str, layers: dict[str, Any]) -> str | None:
    """The adapted module that a weight is in."""
    while name:
        name = name.rpartition(".")[0]
        if name in layers:
            return name
    return None


def _merged(weight: Tensor, layer: Any, whole: Whole) -> Tensor:
    dtype = torch.promote_types(weight.dtype, torch.float32)
    if ADAPTER in layer.lora_embedding_A:
        down, up, is_transposed = layer.lora_embedding_A[ADAPTER], layer.lora_embedding_B[ADAPTER], True
    else:
        down, up = layer.lora_A[ADAPTER].weight, layer.lora_B[ADAPTER].weight
        is_transposed = layer.fan_in_fan_out
    update: Tensor = whole(up).to(dtype) @ whole(down).to(dtype) * layer.scaling[ADAPTER]
    return weight.to(dtype).add(update.T if is_transposed else update).to(weight.dtype)
