"""Supervised learning on the answers of a careless counter, so that the model knows the form of an answer, sees a
little, and has something to learn from rewards.

Scenes are mirrored and their colours exchanged, so that few of them last long.

Shapes: B pictures, T tokens, A tokens of an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedTokenizerFast, Qwen2VLForConditionalGeneration, Qwen2VLImageProcessorPil

from grpo_datasets_vision.scenes.source import scenes
from grpo_datasets_vision.tiny_model.model import PROCESSOR_FILES
from grpo_datasets_vision.tiny_model.task import TASK, answer_text, careless, prompt_text

__all__ = ["WarmUp", "warm_up"]

_IGNORED = -100


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """How long and on what the model is warmed up."""

    updates: int = 600
    """Optimiser updates."""
    batch: int = 32
    """Scenes of one update."""
    pool: int = 4000
    """Different scenes."""
    learning_rate: float = 2e-3
    """AdamW's, at its peak."""
    seed: int = 0
    """Of weights, scenes and answers."""


def warm_up(
    model: Qwen2VLForConditionalGeneration,
    tokenizer: PreTrainedTokenizerFast,
    settings: WarmUp,
    on_update: Callable[[int, float], None] = lambda update, loss: None,
) -> None:
    """Train `model` in place; `on_update` gets the update's number and its loss, in nats a token."""
    random = Random(f"warm-up {settings.seed}")
    made = islice(scenes(TASK, split="train", seed=settings.seed), settings.pool)
    pool = [(np.asarray(picture), problem) for problem, picture in made]
    images = _image_processor()
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    model.train()
    for update in range(1, settings.updates + 1):
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate * _rate(update, settings.updates)
        drawn = random.choices(pool, k=settings.batch)
        pictures = [_varied(picture, random) for picture, _ in drawn]
        answers = [answer_text(careless(problem.answer, random)) for _, problem in drawn]
        loss = _loss(
            model, tokenizer, images(images=pictures, return_tensors="pt"), prompt_text(drawn[0][1].question), answers
        )
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        on_update(update, loss.item())
    model.eval()


def _image_processor() -> Qwen2VLImageProcessorPil:
    settings = dict(PROCESSOR_FILES["preprocessor_config.json"])
    for name in ("image_processor_type", "processor_class"):
        settings.pop(name)
    return Qwen2VLImageProcessorPil(**settings)


def _varied(picture: Any, random: Random) -> Image.Image:
    """Mirrored every other time, and with its colours exchanged."""
    if random.random() < 0.5:
        picture = picture[:, ::-1]
    return Image.fromarray(np.ascontiguousarray(picture[..., random.sample(range(3), 3)]))


def _rate(update: int, updates: int, rise: int = 50) -> float:
    """The factor of the learning rate: up, then constant, then down over the last quarter."""
    return min(1.0, update / rise, 0.05 + 4 * (1 - update / updates))


def _loss(
    model: Qwen2VLForConditionalGeneration,
    tokenizer: PreTrainedTokenizerFast,
    pixels: Any,
    prompt: str,
    answers: list[str],
) -> Tensor:
    """Mean cross entropy of the answers' tokens."""
    turns = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": prompt}]}]
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    merged = model.config.vision_config.spatial_merge_size**2
    visual = int(pixels["image_grid_thw"][0].prod()) // merged
    image = tokenizer.convert_ids_to_tokens(model.config.image_token_id)
    asked = tokenizer(text.replace(image, image * visual))["input_ids"]
    said = [tokenizer(answer + str(tokenizer.eos_token))["input_ids"] for answer in answers]
    length = len(asked) + max(map(len, said))
    tokens_BT = torch.full((len(said), length), int(tokenizer.pad_token_id))
    targets_BT = torch.full((len(said), length), _IGNORED)
    for row, answer in enumerate(said):
        end = len(asked) + len(answer)
        tokens_BT[row, :end] = torch.tensor(asked + answer)
        targets_BT[row, len(asked) : end] = torch.tensor(answer)
    # Padding is on the right, where no token looks, and its targets are ignored.
    logits_BTV = model(
        input_ids=tokens_BT[:, :-1],
        mm_token_type_ids=(tokens_BT[:, :-1] == model.config.image_token_id).int(),
        **pixels,
    ).logits
    return functional.cross_entropy(logits_BTV.transpose(1, 2), targets_BT[:, 1:], ignore_index=_IGNORED)
