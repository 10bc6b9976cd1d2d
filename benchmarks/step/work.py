"""What every trainer of the comparison is given: prompts of a length, a model of a shape, and the reward.

Imports nothing of grpo-core: the peers read it in environments of their own.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

__all__ = ["make_model", "score", "write_prompts"]

TEXT = (
    "Using the numbers {numbers}, write an equation that equals {target}. Each number may be used once, with +, -, * "
    "and /. Think first, between <think> and </think>, and give the equation between <answer> and </answer>. "
)
SYSTEM = {"role": "system", "content": "You are a careful assistant."}
"""Written out, as one chat template adds a text of its own where there is none, and another does not."""


def score(text: str) -> float:
    """Something cheap that differs within a group."""
    return float(len(text) % 7) / 7


def make_model(folder: Path, *, vocabulary: int, tokenizer: Any) -> None:
    """A random Qwen3 of 31 M parameters (at a vocabulary of 49,152), with this tokenizer."""
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=384,
        intermediate_size=1024,
        num_hidden_layers=8,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    model = Qwen3ForCausalLM(config).float()
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_prompts(file: Path, tokenizer: Any, *, count: int, tokens: int) -> None:
    """Conversations whose prompts have so many tokens."""
    draw = random.Random(0)
    with file.open("w", encoding="utf-8") as out:
        for _ in range(count):
            text = TEXT.format(numbers=[draw.randint(1, 99) for _ in range(4)], target=draw.randint(10, 99))
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            messages = [SYSTEM, {"role": "user", "content": text}]
            whole = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
            wanted = max(4, tokens - len(whole) + len(ids))
            messages[1]["content"] = tokenizer.decode((ids * (wanted // len(ids) + 1))[:wanted])
            out.write(json.dumps({"messages": messages}) + "\n")
