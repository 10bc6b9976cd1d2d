"""What the vision tower makes of images, computed once for a prompt and used in every row that begins with it.

    pixels → tower, once → features by prompt → arguments of a forward whose rows repeat the prompts

Positions too: models with M-RoPE count an image by its sides and not by its tokens, so that the first token after a
prompt stands at another place than the prompt's length.

Shapes: P tokens of a prompt, S visual tokens of it, R rows of positions (3 for M-RoPE, else 1), H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_outputs import BaseModelOutputWithPooling

from grpo_core.errors import Problem, RecipeError
from grpo_core.model.vision import PixelInputs

__all__ = ["ImageFeatures", "encode_images", "own_arguments", "position_rows", "prompt_positions", "tower_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFeatures:
    """The images of some prompts as the text layers read them."""

    pooled: tuple[Tensor | None, ...]
    """[prompts] of [S, H] each; None: a prompt without images."""
    deepstack: tuple[tuple[Tensor | None, ...], ...] = ()
    """[layers][prompts] of [S, H] each: what Qwen3-VL adds after its first layers."""
    is_one_tensor: bool = False
    """Whether the family's own layers take the images of all rows as one tensor, and not as a list (InternVL)."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of them, for whoever cuts the graph here."""
        return tuple(each for part in (self.pooled, *self.deepstack) for each in part if each is not None)

    def leaves(self) -> ImageFeatures:
        """The same values, cut off from the tower: gradients gather here until they are handed to it together."""

        def cut(values: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
            return tuple(None if value is None else value.detach().requires_grad_() for value in values)

        return replace(self, pooled=cut(self.pooled), deepstack=tuple(map(cut, self.deepstack)))

    def of(self, prompts: Sequence[int]) -> ImageFeatures:
        """Of these prompts, in this order."""

        def pick(values: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
            return tuple(values[prompt] for prompt in prompts)

        return replace(self, pooled=pick(self.pooled), deepstack=tuple(map(pick, self.deepstack)))

    def arguments(self, rows: Sequence[int]) -> dict[str, Any]:
        """Keyword arguments of a forward, of the model or its backbone, whose row i has the prompt `rows[i]`; none
        where no row has an image."""
        chosen = self.of(rows)
        pooled = [value for value in chosen.pooled if value is not None]
        if not pooled:
            return {}
        output = BaseModelOutputWithPooling(pooler_output=torch.cat(pooled) if self.is_one_tensor else pooled)
        if self.deepstack:
            layers = [[value for value in layer if value is not None] for layer in chosen.deepstack]
            output["deepstack_features"] = layers
        return {"mm_encoder_outputs": {"image": output}}


def encode_images(model: Any, inputs: Sequence[PixelInputs | None]) -> ImageFeatures:
    """Run the vision tower once over all images of these prompts (None: it has none)."""
    present = [each for each in inputs if each is not None]
    if not present:
        return ImageFeatures(pooled=(None,) * len(inputs))
    parameter = next(tower_of(model).parameters())
    arguments = {name: value.to(parameter.device) for name, value in _joined(present).items()}
    output = model.get_image_features(**arguments, return_dict=True)
    counts = [each.tokens for each in present]
    deepstack = getattr(output, "deepstack_features", None) or ()
    return ImageFeatures(
        pooled=_by_prompt(output.pooler_output, counts, inputs),
        deepstack=tuple(_by_prompt(layer, counts, inputs) for layer in deepstack),
        is_one_tensor=isinstance(output.pooler_output, Tensor),
    )


def own_arguments(model: Any, ids_BT: Tensor, inputs: Sequence[PixelInputs]) -> dict[str, Any]:
    """Keyword arguments of a forward that runs the tower itself: rows of tokens with the pixels of all their images,
    positions left to the model."""
    arguments: dict[str, Any] = {name: value.to(ids_BT.device) for name, value in _joined(inputs).items()}
    if position_rows(model) > 1:
        arguments["mm_token_type_ids"] = (ids_BT == model.config.image_token_id).int()
    return arguments


def prompt_positions(model: Any, prompt_ids: Sequence[int], inputs: PixelInputs | None) -> Tensor:
    """[R, P] int64, on the CPU: where each token of a prompt stands. The first token after it stands one behind the
    largest of these, in every row."""
    base = _base(model)
    if inputs is None or not hasattr(base, "get_rope_index"):
        return torch.arange(len(prompt_ids)).expand(position_rows(model), -1)
    ids_1P = torch.tensor([prompt_ids])
    grids = {name: value for name, value in inputs.tensors.items() if name == "image_grid_thw"}
    positions_R1P, _ = base.get_rope_index(
        ids_1P,
        mm_token_type_ids=(ids_1P == model.config.image_token_id).int(),
        attention_mask=torch.ones_like(ids_1P),
        **grids,
    )
    positions_RP: Tensor = positions_R1P[:, 0]
    return positions_RP


def position_rows(model: Any) -> int:
    """R: how many numbers a token's position has."""
    return 3 if hasattr(_base(model), "get_rope_index") else 1


def tower_of(model: Any) -> nn.Module:
    """The vision tower; in Qwen's family what joins it to the text layers is part of it."""
    tower = model.get_encoder(modality="image")
    if tower is model:
        problem = f"{type(model).__name__} has no vision tower under a name that is known"
        raise RecipeError([Problem(path="model.path", message=problem)])
    found: nn.Module = tower
    return found


def _base(model: Any) -> Any:
    return getattr(model, "base_model", model)


def _joined(inputs: Sequence[PixelInputs]) -> dict[str, Tensor]:
    """The arguments of all prompts as those of one: images lie along the first axis, or, where a family keeps a batch
    axis before it (Idefics3: [1, images, channels, height, width]), along the second, of one size."""
    joined = {}
    nested = inputs[0].tensors["pixel_values"].ndim == 5
    for name in inputs[0].tensors:
        values = [each.tensors[name] for each in inputs]
        axis = 1 if nested else 0
        if nested:
            height, width = (max(value.shape[side] for value in values) for side in (-2, -1))
            values = [
                functional.pad(value, (0, width - value.shape[-1], 0, height - value.shape[-2])) for value in values
            ]
        joined[name] = torch.cat(values, dim=axis)
    return joined


def _by_prompt(
    found: Tensor | Sequence[Tensor], counts: Sequence[int], inputs: Sequence[PixelInputs | None]
) -> tuple[Tensor | None, ...]:
    parts = [found] if isinstance(found, Tensor) else list(found)
    whole = torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])
    split = iter(torch.split(whole, list(counts)))
    return tuple(None if each is None else next(split) for each in inputs)
