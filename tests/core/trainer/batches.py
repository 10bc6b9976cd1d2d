"""Batches, contexts and a plain reference for the trainer's tests."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from grpo_core.backends import BackendContext, ModelSettings, ObjectiveSettings, RolloutSettings, TrainerSettings
from grpo_core.objective.loss import Denominators, TokenInputs, compute_loss
from grpo_core.trainer.backend import TorchTrainer, make
from grpo_core.trainer.options import TorchTrainerOptions
from grpo_core.types import TokenStats, TrainBatch, TrainGroup, TrainMember
from tests.core.rollout.many_models import make as make_odd_model
from tests.tiny_models import make_tokenizer

MAX_COMPLETION_TOKENS = 12
ROUTER_COEFFICIENT = 0.5


def make_trainer(
    folder: Path,
    *,
    objective: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    total_updates: int = 10,
    place: Mapping[str, int] | None = None,
    **trainer: Any,
) -> TorchTrainer:
    """A trainer on the CPU; `trainer` are its settings, `place` says which rank it is."""
    context = BackendContext(
        model=ModelSettings(path=str(folder)),
        rollout=RolloutSettings(),
        trainer=TrainerSettings(**{"learning_rate": 1e-3, **trainer}),
        objective=ObjectiveSettings(**(objective or {})),
        total_updates=total_updates,
        **(place or {}),
    )
    return make(TorchTrainerOptions(**{"device": "cpu", **(options or {})}), context)


def make_batch(
    *, groups: int = 3, members: int = 4, seed: int = 0, signal_free: tuple[int, ...] = (), **batch: Any
) -> TrainBatch:
    """Random prompts and completions of mixed lengths; the last member of group 0 is not in the loss."""
    draw = random.Random(seed)

    def member(in_loss: bool, has_signal: bool) -> TrainMember:
        length = draw.randint(1, MAX_COMPLETION_TOKENS)
        return TrainMember(
            token_ids=tuple(draw.randrange(256) for _ in range(length)),
            advantage=draw.gauss(0.0, 1.0) if has_signal else 0.0,
            sampling_logprobs=tuple(draw.uniform(-7.0, -4.0) for _ in range(length)),
            in_loss=in_loss,
        )

    made = tuple(
        TrainGroup(
            prompt_ids=tuple(draw.randrange(256) for _ in range(draw.randint(1, 15))),
            members=tuple(member((g, m) != (0, members - 1), g not in signal_free) for m in range(members)),
        )
        for g in range(groups)
    )
    lengths = [len(one.token_ids) for group in made for one in group.members if one.in_loss]
    return TrainBatch(
        groups=made,
        sequences=len(lengths),
        tokens=sum(lengths),
        **{
            "step": 1,
            "temperature": 1.0,
            "logprob_space": "tempered",
            "max_completion_tokens": MAX_COMPLETION_TOKENS,
            **batch,
        },
    )


def make_routed_folder(path: Path, name: str = "Mixtral", **changes: Any) -> Path:
    """A mixture of experts whose config asks for the loss of routers."""
    model = make_odd_model(
        name, **{"output_router_logits": True, "router_aux_loss_coef": ROUTER_COEFFICIENT, **changes}
    )
    model.save_pretrained(path)
    make_tokenizer().save_pretrained(path)
    return path


def with_numbers(batch: TrainBatch, stats: TokenStats, *fields: str, noise: float = 0.0) -> TrainBatch:
    """Put log-probabilities of `stats`, each shifted by up to `noise`, into the named fields of every member."""
    draw = random.Random(7)

    def changed(member: TrainMember, logprobs: tuple[float, ...]) -> TrainMember:
        shifted = {name: tuple(value + draw.uniform(-noise, noise) for value in logprobs) for name in fields}
        return replace(member, **shifted)

    groups = tuple(
        replace(group, members=tuple(changed(*pair) for pair in zip(group.members, rows, strict=True)))
        for group, rows in zip(batch.groups, stats.logprobs, strict=True)
    )
    return replace(batch, groups=groups)


def gradient_of_update(trainer: TorchTrainer, batch: TrainBatch, scratch: Path) -> dict[str, Tensor]:
    """The gradient of the first update, which AdamW's first moment is when `adam_beta1` is 0 and nothing is clipped."""
    trainer.update(batch)
    scratch.mkdir(exist_ok=True)
    trainer.save(scratch)
    moments = load_file(scratch / "optimizer.safetensors")
    return {name.removeprefix("exp_avg/"): value for name, value in moments.items() if name.startswith("exp_avg/")}


UNTOUCHED = {"adam_beta1": 0.0, "max_grad_norm": None}
"""Settings under which `gradient_of_update` sees the gradient itself."""


def plain_gradient(model: Any, batch: TrainBatch, objective: ObjectiveSettings) -> dict[str, Tensor]:
    """The same by definition: each completion alone through the model's own forward, one loss over all of them."""
    model.zero_grad()
    pairs = [(group.prompt_ids, member) for group in batch.groups for member in group.members]
    rows = [plain_logprobs(model, prompt_ids, member.token_ids, batch.temperature) for prompt_ids, member in pairs]
    members = [member for _, member in pairs]
    lengths = torch.tensor([len(member.token_ids) for member in members])
    in_loss = torch.tensor([member.in_loss for member in members])
    mask_BT = (torch.arange(int(lengths.max())) < lengths[:, None]) & in_loss[:, None]

    def padded(values: list[Any]) -> Tensor | None:
        return None if values[0] is None else pad_sequence([torch.as_tensor(row) for row in values], batch_first=True)

    inputs = TokenInputs(
        logprobs_BT=pad_sequence([logprobs for logprobs, _ in rows], batch_first=True),
        entropies_BT=pad_sequence([entropies for _, entropies in rows], batch_first=True),
        sampling_logprobs_BT=pad_sequence([torch.tensor(m.sampling_logprobs) for m in members], batch_first=True),
        advantages_B=torch.tensor([member.advantage for member in members]),
        mask_BT=mask_BT,
        old_logprobs_BT=padded([member.old_logprobs for member in members]),
        reference_logprobs_BT=padded([member.reference_logprobs for member in members]),
    )
    compute_loss(inputs, Denominators.of(batch), objective).loss.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.requires_grad}


def assert_same_gradients(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Equal but for the rounding of fp32 sums in another order, which is relative to the largest of the terms."""
    assert actual.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        allowed = 1e-4 * float(gradient.abs().max()) + 1e-6 * largest
        torch.testing.assert_close(
            actual[name], gradient, rtol=0.0, atol=allowed, msg=lambda text, name=name: f"{name}: {text}"
        )


def plain_logprobs(
    model: Any, prompt_ids: tuple[int, ...], token_ids: tuple[int, ...], temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies of a completion's tokens from `model(...).logits`, with gradient."""
    logits_TV = model(torch.tensor([prompt_ids + token_ids])).logits[0].float() / temperature
    logp_TV = logits_TV[len(prompt_ids) - 1 : -1].log_softmax(-1)
    return logp_TV.gather(-1, torch.tensor(token_ids)[:, None])[:, 0], -(logp_TV.exp() * logp_TV).sum(-1)
