"""Batches with images for the trainer's tests, and the plain way to train on them: everything once for a completion."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from grpo_core.backends import ModelSettings, ObjectiveSettings
from grpo_core.data.prompts import render_prompts
from grpo_core.model.image_features import position_rows, tower_of
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.model.vision import load_vision
from grpo_core.objective.loss import Denominators, TokenInputs, compute_loss
from grpo_core.types import ImageRef, Message, Sample, TrainBatch, TrainGroup
from tests.core.trainer.batches import make_batch
from tests.vl_models import encoded_picture

PICTURES: Sequence[tuple[tuple[int, int], ...]] = (((80, 64),), (), ((64, 64), (60, 90)), ((112, 56),))
"""[prompts] of sizes of its images."""


def make_vl_batch(
    folder: Path,
    pictures: Sequence[tuple[tuple[int, int], ...]] = PICTURES,
    *,
    members: int = 4,
    seed: int = 0,
    **batch: Any,
) -> TrainBatch:
    """A prompt for each of `pictures`, which gives the sizes of its images; completions of mixed lengths."""
    made = make_batch(groups=len(pictures), members=members, seed=seed, **batch)
    draw = random.Random(seed)
    samples = [
        Sample(
            id=f"train-{number:06d}",
            messages=(Message(role="user", content="<image>" * len(sizes) + "How many?"[: draw.randint(3, 9)]),),
            images=tuple(ImageRef(source=encoded_picture(draw.randrange(999), size)) for size in sizes),
        )
        for number, sizes in enumerate(pictures)
    ]
    settings = ModelSettings(path=str(folder))
    rendered = render_prompts(
        samples,
        load_tokenizer(settings),
        max_prompt_tokens=None,
        over_long="drop",
        vision=load_vision(settings),
    )
    groups = tuple(
        replace(group, prompt_ids=prompt.token_ids, images=prompt.sample.images)
        for group, prompt in zip(made.groups, rendered.prompts, strict=True)
    )
    return replace(made, groups=groups)


def plain_vl_gradient(
    model: Any, folder: Path, batch: TrainBatch, objective: ObjectiveSettings | None = None
) -> dict[str, Tensor]:
    """The gradient of the whole update by the model's own forwards, which encode images once for each completion."""
    model.zero_grad()
    vision = load_vision(ModelSettings(path=str(folder)))
    assert vision is not None
    rows = [(group, member) for group in batch.groups for member in group.members]
    logprobs = [plain_vl_logprobs(model, vision, group, member.token_ids, batch.temperature) for group, member in rows]
    padded = pad_sequence(logprobs, batch_first=True)
    lengths = [len(member.token_ids) for _, member in rows]

    def numbers(values: Sequence[Sequence[float]]) -> Tensor:
        return pad_sequence([torch.tensor(value) for value in values], batch_first=True)

    mask = pad_sequence(
        [torch.full((n,), m.in_loss) for n, (_, m) in zip(lengths, rows, strict=True)], batch_first=True
    )
    inputs = TokenInputs(
        logprobs_BT=padded,
        sampling_logprobs_BT=numbers([member.sampling_logprobs for _, member in rows]),
        entropies_BT=torch.zeros_like(padded),
        advantages_B=torch.tensor([member.advantage for _, member in rows]),
        mask_BT=mask,
    )
    loss = compute_loss(inputs, Denominators.of(batch), objective or ObjectiveSettings()).loss
    loss.backward()
    found = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def plain_vl_logprobs(
    model: Any, vision: Any, group: TrainGroup, completion: tuple[int, ...], temperature: float
) -> Tensor:
    """[T] Of a completion, by the model's own forward of pixels, which counts positions too."""
    ids_1T = torch.tensor([group.prompt_ids + completion[:-1]])
    own: dict[str, Any] = {}
    if group.images:
        own = dict(vision.process(group.images).tensors)
        if position_rows(model) > 1:
            own["mm_token_type_ids"] = (ids_1T == vision.image_token_id).int()
    logits_TV = model(input_ids=ids_1T, **own).logits[0, len(group.prompt_ids) - 1 :] / temperature
    return logits_TV.float().log_softmax(-1).gather(-1, torch.tensor(completion)[:, None])[:, 0]


@contextmanager
def counted_tower(model: Any) -> Iterator[list[int]]:
    """Inside, each call of the vision tower adds the number of patches (or tiles) that it got."""
    calls: list[int] = []

    def seen(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        calls.append(len(arguments[0] if arguments else named["pixel_values"]))

    hook = tower_of(model).register_forward_pre_hook(seen, with_kwargs=True)
    try:
        yield calls
    finally:
        hook.remove()
