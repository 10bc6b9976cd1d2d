"""Images in a trainer's passes: encoded once for a round of micro-batches, and used in every row of their groups.

    groups of a round → pixels and positions → tower, once → features → micro-batches against leaves of them
    → the last one against the features themselves, with the leaves' gradients: one backward through the tower

The tower runs inside the policy's `forward`, so that what wraps the policy sees every use of its weights.

Shapes: P tokens of a prompt, R rows of positions (3 for M-RoPE, else 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from grpo_core.backends import ModelSettings
from grpo_core.model.image_features import ImageFeatures, encode_images, position_rows, prompt_positions
from grpo_core.model.vision import PixelInputs, Vision, load_vision
from grpo_core.types import TrainGroup

__all__ = ["ImageReader", "Opaque", "RoundImages", "RowImages"]

Value = TypeVar("Value")


class Opaque(Generic[Value]):
    """Holds what goes into the policy and comes out of it and no wrapper is to look into. FSDP and DeepSpeed put hooks
    on every tensor that they find there: gradients of features would begin collectives, on some ranks only, and be
    scaled twice. Without slots: DeepSpeed asks for the attributes of what a module gives."""

    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass(frozen=True, slots=True, kw_only=True)
class RowImages:
    """The images of a micro-batch's rows."""

    features: ImageFeatures
    """Of the prompts of the round."""
    pixels: tuple[PixelInputs, ...]
    """Of the same prompts."""
    places: tuple[int, ...]
    """[B] Which of these each row's prompt is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundImages:
    """The images of a round's prompts, and where the tokens of prompts stand."""

    features: ImageFeatures | None
    """None: no rank has an image in this round."""
    pixels: tuple[PixelInputs, ...]
    """Of the same prompts."""
    positions: tuple[Tensor, ...]
    """[R, P] int64 for each of them."""
    places: Mapping[int, int]
    """Group -> which of these prompts is its own; without groups that have no image. That of dummies is the blank."""
    position_rows: int
    """R."""

    def of_rows(self, groups: Sequence[int]) -> Opaque[RowImages] | None:
        """Those of rows that belong to these groups; None in a round without images."""
        if self.features is None:
            return None
        places = tuple(self.places[group] for group in groups)
        return Opaque(RowImages(features=self.features, pixels=self.pixels, places=places))

    def positions_of(self, group: int, prompt_tokens: int, length: int) -> Tensor:
        """[R, length] Those of a row's tokens; a completion counts on behind the largest of its prompt's."""
        if group not in self.places:
            return torch.arange(length).expand(self.position_rows, -1)
        prompt_RP = self.positions[self.places[group]]
        following = torch.arange(length - prompt_tokens) + prompt_RP.max() + 1
        return torch.cat([prompt_RP, following.expand(self.position_rows, -1)], dim=1)

    def cut(self) -> RoundImages:
        """The same cut off from the tower, with leaves that gather gradients where the tower or what follows it is
        trained."""
        if self.features is None or not any(tensor.requires_grad for tensor in self.features.tensors):
            return self
        leaves = self.features.leaves()
        for leaf in leaves.tensors:
            leaf.grad_dtype = torch.float32
        return replace(self, features=leaves)

    def joined(self, loss: Tensor, before: RoundImages) -> Tensor:
        """The same loss; its backward pass also hands the gradients that leaves of `before` have gathered to the tower.

        They are handed over as they are: whatever the loss is multiplied by, theirs was too."""
        if self.features is None:
            return loss
        pairs = zip(self.features.tensors, (before.features or self.features).tensors, strict=True)
        trained = [(tensor, leaf) for tensor, leaf in pairs if tensor.requires_grad]
        if not trained:
            return loss
        gradients = [
            torch.zeros_like(tensor) if leaf is tensor or leaf.grad is None else leaf.grad.to(tensor.dtype)
            for tensor, leaf in trained
        ]
        handed: Tensor = _HandOver.apply(gradients, loss, *(tensor for tensor, _ in trained))  # type: ignore[no-untyped-call]
        return handed


class ImageReader:
    """How the images of prompts become what a policy is given."""

    def __init__(self, vision: Vision, model: Any) -> None:
        """`model` is the policy's; only its config and its way to count positions are used."""
        self._vision, self._model = vision, model

    @classmethod
    def of(cls, settings: ModelSettings, model: Any) -> ImageReader | None:
        """That of the model with these settings; None: it reads text only."""
        vision = load_vision(settings)
        return None if vision is None else cls(vision, model)

    def save(self, directory: Path) -> None:
        """Write the processor's files beside an exported model."""
        self._vision.save(directory)

    def visual_tokens(self, group: TrainGroup) -> int:
        """Of a group's images, each once."""
        return group.prompt_ids.count(self._vision.image_token_id)

    @cached_property
    def blank(self) -> TrainGroup:
        """A prompt of nothing but a blank image, for ranks with nothing to forward where another one has images: with
        one, they do what that one does, through tower and text, in the same order."""
        tokens = self._blank_pixels.tokens
        return TrainGroup(prompt_ids=(self._vision.image_token_id,) * tokens, members=())

    @cached_property
    def _blank_pixels(self) -> PixelInputs:
        return self._vision.blank()

    def encode(self, policy: Callable[..., Any], groups: Mapping[int, TrainGroup]) -> RoundImages:
        """Run the tower once, for the groups of a round: all of them have images, or are the blank one; without groups
        it does not run."""
        pixels = tuple(
            self._blank_pixels if group is self.blank else self._vision.process(group.images)
            for group in groups.values()
        )
        return RoundImages(
            features=policy(Opaque(_Encode(pixels))).value if pixels else None,
            pixels=pixels,
            positions=tuple(
                prompt_positions(self._model, group.prompt_ids, inputs)
                for group, inputs in zip(groups.values(), pixels, strict=True)
            ),
            places={group: place for place, group in enumerate(groups)},
            position_rows=position_rows(self._model),
        )


@dataclass(frozen=True)
class _Encode:
    """Called with the policy, inside its `forward`."""

    pixels: tuple[PixelInputs, ...]

    def __call__(self, policy: Any) -> ImageFeatures:
        return encode_images(policy.model, self.pixels)


class _HandOver(torch.autograd.Function):
    """The loss as it is; in the backward pass features get gradients that are known already."""

    @staticmethod
    def forward(ctx: Any, gradients: Sequence[Tensor], loss: Tensor, *features: Tensor) -> Tensor:
        ctx.gradients = gradients
        return loss.view_as(loss)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return (None, gradient, *ctx.gradients)
