"""Runs a decoder and compares each of its logits with a plain forward over the whole sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from grpo_core.rollout.forward import Decoder, decoding
from grpo_core.rollout.prompts import text_prompts

Ids = list[int]

LENGTHS = (1, 3, 5, 5, 12, 20)
REPEATS = (2, 3, 1, 2, 4, 2)


def random_ids(count: int, seed: int) -> Ids:
    return torch.randint(0, 256, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def prompts_of(lengths: Sequence[int] = LENGTHS) -> list[Ids]:
    return [random_ids(length, seed) for seed, length in enumerate(lengths)]


def run(model: Any, decoder: Decoder, prompts: list[Ids], steps: int, keep: dict[int, Ids]) -> list[tuple[Ids, Any]]:
    """(all tokens of a sequence so far, the logits after them) for each sequence and step."""
    seen: list[tuple[Ids, Any]] = []
    sequences = [list(prompt) for prompt, count in zip(prompts, REPEATS, strict=False) for _ in range(count)]
    with decoding(model):
        logits = decoder.prefill(text_prompts(prompts), REPEATS[: len(prompts)])
        for step in range(steps):
            seen += zip([list(s) for s in sequences], logits, strict=True)
            if step in keep:
                decoder.keep(keep[step])
                sequences = [sequences[row] for row in keep[step]]
            tokens = random_ids(len(sequences), 1000 + step)
            sequences = [[*sequence, token] for sequence, token in zip(sequences, tokens, strict=True)]
            logits = decoder.step(torch.tensor(tokens))
        seen += zip(sequences, logits, strict=True)
    return seen


def assert_teacher_forced(model: Any, seen: list[tuple[Ids, Any]], tolerance: float = 1e-5) -> None:
    """The same log-probabilities as a forward over the whole sequence, alone and without padding."""
    longest: dict[tuple[int, ...], Any] = {}
    with decoding(model):
        for ids, logits in sorted(seen, key=lambda pair: -len(pair[0])):
            whole = next((k for k in longest if k[: len(ids)] == tuple(ids)), None)
            if whole is None:
                whole = tuple(ids)
                longest[whole] = model(torch.tensor([ids]), use_cache=False).logits[0].log_softmax(-1)
            torch.testing.assert_close(logits.log_softmax(-1), longest[whole][len(ids) - 1], rtol=0, atol=tolerance)
