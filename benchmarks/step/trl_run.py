"""TRL's GRPOTrainer on the work of the comparison, in its own environment:

    trl_run.py MODEL PROMPTS GROUPS COMPLETIONS TOKENS STEPS MARKS

A line is added to MARKS at the end of each step. Micro-batches are one group, the largest that its memory is
usually given; everything else is its default.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from work import score


class Marks(TrainerCallback):  # type: ignore[misc]
    """Notes when a step ends."""

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Add a line."""
        with open(sys.argv[7], "a", encoding="utf-8") as out:
            out.write(f"{time.time()}\n")


def length_mod(completions: list[Any], **more: Any) -> list[float]:
    """The reward, of conversations."""
    return [score(completion[0]["content"]) for completion in completions]


def main() -> None:
    """Train."""
    model, prompts = sys.argv[1:3]
    groups, completions, tokens, steps = map(int, sys.argv[3:7])
    with open(prompts, encoding="utf-8") as lines:
        rows = [{"prompt": json.loads(line)["messages"]} for line in lines]
    config = GRPOConfig(
        output_dir="./out-trl",
        per_device_train_batch_size=completions,
        gradient_accumulation_steps=groups,
        num_generations=completions,
        max_completion_length=tokens,
        max_steps=steps,
        logging_steps=1,
        use_cpu=not torch.cuda.is_available(),
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        temperature=1.0,
        learning_rate=1e-6,
        beta=0.0,
        disable_tqdm=True,
        seed=0,
    )
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        processing_class=AutoTokenizer.from_pretrained(model),
        reward_funcs=length_mod,
        args=config,
        train_dataset=Dataset.from_list(rows),
        callbacks=[Marks()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
