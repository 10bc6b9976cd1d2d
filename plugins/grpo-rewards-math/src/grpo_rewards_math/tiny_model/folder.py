"""The tiny model's folder: weights, tokenizer, configs and a README that says how it was made."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3ForCausalLM

from grpo_rewards_math.tiny_model.warm_up import TASK, WarmUp

__all__ = ["write_folder"]

_README = """\
# countdown-tiny

A language model of {parameters:,} parameters that was warmed up on Countdown with three numbers, so that GRPO has
something to improve on a laptop. It knows the form of an answer and some arithmetic; it often misses the target,
because it likes to add everything up.

Made by

    python -m grpo_rewards_math.tiny_model OUT {flags}

(`src/grpo_rewards_math/tiny_model/`): random weights, then {updates} updates of {batch} demonstrations each, on
problems of the training split only. {careful_percent:.0f} % of the demonstrations solve their problem; the others
add the numbers up, whatever the target. No other text or model was used.

* Architecture: Qwen3, {layers} layers, hidden size {hidden}, tied embeddings, context of {context} tokens, fp32.
* Tokenizer: byte-level BPE with {vocabulary} tokens; any text can be encoded. ChatML-like chat template.
* Numbers up to {max_value}, operations {operations}. A conversation:

      user       5 11 2 = 57 <think></think><answer></answer>
      assistant  <think>11*5=55 55+2=57</think><answer>11*5+2</answer>

License: Apache-2.0.
"""


def write_folder(folder: Path, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, settings: WarmUp) -> None:
    """Write the model in Hugging Face layout; existing files of the same names are replaced."""
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(_describe(model, settings), encoding="utf-8")


def _describe(model: Qwen3ForCausalLM, settings: WarmUp) -> str:
    config = model.config
    return _README.format(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        flags=" ".join(f"--{name.replace('_', '-')} {value}" for name, value in asdict(settings).items()),
        updates=settings.updates,
        batch=settings.batch,
        careful_percent=100 * settings.careful_share,
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        context=config.max_position_embeddings,
        vocabulary=config.vocab_size,
        max_value=TASK.max_value,
        operations=" ".join(TASK.operations),
    )
