"""A fresh Qwen3 of 0.8 M parameters, trained to imitate demonstrations: plain supervised learning in fp32.

The same seed gives the same weights on the same machine with the same number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice

import torch
from torch.nn import functional
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from grpo_rewards_math.tiny_model.lesson import Demonstration, Lesson, WarmUp
from grpo_rewards_math.tiny_model.tokenizer import CONTEXT_TOKENS

__all__ = ["fresh_model", "warm_up"]

_IGNORED = -100
"""The target of a position that has none, as torch's cross entropy knows it."""

Encoded = tuple[list[int], list[int]]
"""The tokens of a prompt and of its answer, end token included."""


def fresh_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3ForCausalLM:
    """Build the model with random weights."""
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config)


def warm_up(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    lesson: Lesson,
    settings: WarmUp,
    on_update: Callable[[int, float], None] = lambda update, loss: None,
) -> None:
    """Train `model` in place on the lesson's demonstrations; `on_update` gets the update's number and its loss."""
    optimisers = _optimisers(model, settings.learning_rate)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(each, lambda done: _rate(done, settings.updates)) for each in optimisers
    ]
    model.train()
    for update, shown in enumerate(islice(lesson.batches(settings), settings.updates), start=1):
        loss = _imitation_loss(model, [_encode(each, tokenizer) for each in shown])
        model.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser, schedule in zip(optimisers, schedules, strict=True):
            optimiser.step()
            schedule.step()
        on_update(update, loss.item())
    model.eval()


def _optimisers(model: Qwen3ForCausalLM, learning_rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, which here needs half the updates of AdamW; AdamW for embeddings and norms."""
    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    chosen = set(matrices)
    others = [weight for weight in model.parameters() if weight not in chosen]
    return [
        torch.optim.Muon(matrices, lr=learning_rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=learning_rate / 2, betas=(0.9, 0.98), weight_decay=0.01),
    ]


def _rate(done: int, updates: int, rise: int = 20) -> float:
    """The factor of the learning rate: up over the first updates, then down to a twentieth."""
    return min(1.0, (done + 1) / rise) * (0.05 + 0.95 * (1 + math.cos(math.pi * done / updates)) / 2)


def _encode(demonstration: Demonstration, tokenizer: PreTrainedTokenizerFast) -> Encoded:
    turns = [{"role": "user", "content": demonstration.prompt}]
    prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    answer = demonstration.answer + str(tokenizer.eos_token)
    return tokenizer(prompt)["input_ids"], tokenizer(answer)["input_ids"]


def _imitation_loss(model: Qwen3ForCausalLM, batch: Sequence[Encoded]) -> torch.Tensor:
    """Mean cross entropy of the answers' tokens, in nats. Shapes: B demonstrations, T tokens."""
    length = max(len(prompt) + len(answer) for prompt, answer in batch)
    tokens_BT = torch.full((len(batch), length), int(model.config.pad_token_id))
    targets_BT = torch.full((len(batch), length), _IGNORED)
    for row, (prompt, answer) in enumerate(batch):
        end = len(prompt) + len(answer)
        tokens_BT[row, :end] = torch.tensor(prompt + answer)
        targets_BT[row, len(prompt) : end] = torch.tensor(answer)
    # Right padding: causal attention never looks at it, and its targets are ignored.
    logits_BTV = model(input_ids=tokens_BT[:, :-1]).logits
    return functional.cross_entropy(logits_BTV.transpose(1, 2), targets_BT[:, 1:], ignore_index=_IGNORED)
