"""A tiny model's folder: weights, tokenizer, configs and a README that says how it was made."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3ForCausalLM

from grpo_rewards_math.tiny_model.lesson import Lesson, WarmUp

__all__ = ["describe", "write_folder"]


def write_folder(
    folder: Path, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, lesson: Lesson, settings: WarmUp
) -> None:
    """Write the model in Hugging Face layout; existing files of the same names are replaced."""
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(describe(model, lesson, settings), encoding="utf-8")


def describe(model: Qwen3ForCausalLM, lesson: Lesson, settings: WarmUp) -> str:
    """The README: the lesson's text with the command that made the model, and its sizes."""
    config = model.config
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in asdict(settings).items())
    return lesson.readme.format(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        command=f"{lesson.command} OUT {flags}",
        updates=settings.updates,
        batch=settings.batch,
        careful_percent=100 * settings.careful_share,
        architecture=f"Qwen3, {config.num_hidden_layers} layers, hidden size {config.hidden_size}, tied embeddings, "
        f"context of {config.max_position_embeddings} tokens, fp32",
        vocabulary=config.vocab_size,
    )
