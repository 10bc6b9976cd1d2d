"""The prompts of a wave as the model reads them: tokens, their positions, and what the vision tower made of images.

Each image is loaded, processed and encoded once for a request, however many completions it asks for.

Shapes: P prompts, L tokens of the longest, R rows of positions (3 for M-RoPE, else 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from grpo_core.errors import GrpoError, RolloutError
from grpo_core.model.image_features import ImageFeatures, encode_images, position_rows, prompt_positions
from grpo_core.model.vision import PixelInputs, Vision
from grpo_core.types import RolloutRequest
from grpo_core.types.sample import image_count

__all__ = ["Prompts", "read_prompts", "text_prompts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Some prompts. The lists are of one length."""

    ids: tuple[tuple[int, ...], ...]
    """Of tokens; those of images are among them."""
    positions: tuple[Tensor, ...]
    """[R, tokens] int64 of each, on the CPU. What follows a prompt stands one behind the largest."""
    pixels: tuple[PixelInputs | None, ...]
    """The images of each; None: it has none."""
    features: ImageFeatures
    """What the vision tower made of these."""

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, places: Sequence[int]) -> Prompts:
        """These of them, in this order."""
        return Prompts(
            ids=tuple(self.ids[place] for place in places),
            positions=tuple(self.positions[place] for place in places),
            pixels=tuple(self.pixels[place] for place in places),
            features=self.features.of(places),
        )

    def behind(self, texts: Prompts) -> Prompts:
        """These, with prompts without images before them."""
        none = (None,) * len(texts)
        features = replace(
            self.features,
            pooled=none + self.features.pooled,
            deepstack=tuple(none + layer for layer in self.features.deepstack),
        )
        return Prompts(
            ids=texts.ids + self.ids,
            positions=texts.positions + self.positions,
            pixels=none + self.pixels,
            features=features,
        )

    def without_images(self, place: int) -> tuple[int, ...]:
        """The tokens of one of them behind its last image; all of them where it has none."""
        ids, pixels = self.ids[place], self.pixels[place]
        if pixels is None:
            return ids
        last = max(index for index, token in enumerate(ids) if token == pixels.token_id)
        return ids[last + 1 :] or ids[:1]

    def next_positions(self) -> Tensor:
        """[P] Where the first token after each prompt stands, in every row."""
        return torch.stack([positions.max() + 1 for positions in self.positions])

    def padded_positions(self, columns: int) -> Tensor:
        """[R, P, L] Padded on the left with 0."""
        return torch.stack([pad(each, (columns - each.shape[1], 0)) for each in self.positions], dim=1)

    def continued_positions(self, columns: int) -> Tensor:
        """[R, P, columns] Of each prompt and whatever follows it, on the left."""
        rows = []
        for each in self.positions:
            following = torch.arange(columns - each.shape[1]) + each.max() + 1
            rows.append(torch.cat([each, following.expand(len(each), -1)], dim=1))
        return torch.stack(rows, dim=1)


def text_prompts(ids: Sequence[Sequence[int]], rows: int = 1) -> Prompts:
    """Prompts without images; `rows` is R."""
    return Prompts(
        ids=tuple(tuple(each) for each in ids),
        positions=tuple(torch.arange(len(each)).expand(rows, -1) for each in ids),
        pixels=(None,) * len(ids),
        features=ImageFeatures(pooled=(None,) * len(ids)),
    )


def read_prompts(model: Any, requests: Sequence[RolloutRequest], vision: Vision | None) -> Prompts:
    """The prompts of requests, their images encoded; raises `RolloutError` that names the sample where an image cannot
    be read or is not the one that the prompt has room for."""
    ids = [request.prompt_ids for request in requests]
    if vision is None:
        return text_prompts(ids)
    pixels = [_pixels(request, vision) for request in requests]
    if not any(pixels):
        return text_prompts(ids, position_rows(model))
    positions = [prompt_positions(model, prompt, own) for prompt, own in zip(ids, pixels, strict=True)]
    return Prompts(
        ids=tuple(ids),
        positions=tuple(positions),
        pixels=tuple(pixels),
        features=encode_images(model, pixels),
    )


def _pixels(request: RolloutRequest, vision: Vision) -> PixelInputs | None:
    """The images of a request; None: it has none."""
    images = request.sample.images
    try:
        pixels = vision.process(images) if images else None
    except GrpoError as error:
        raise RolloutError(f"sample {request.sample.id!r}: {error.message}", hint=error.hint) from error
    room, tokens = request.prompt_ids.count(vision.image_token_id), 0 if pixels is None else pixels.tokens
    if room != tokens:
        hint = "did an image file change since the run began?"
        if not images:
            hint = "its text has the model's own token for an image; write something else in its place"
        raise RolloutError(
            f"sample {request.sample.id!r}: its prompt has {room} visual tokens, and its {image_count(len(images))} "
            f"{tokens}",
            hint=hint,
        )
    return pixels
