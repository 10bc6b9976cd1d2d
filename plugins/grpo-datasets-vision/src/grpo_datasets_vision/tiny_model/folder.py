"""The tiny model's folder: weights, tokenizer, image processor, configs and a README that says how it was made."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2VLForConditionalGeneration

from grpo_datasets_vision.tiny_model.model import PROCESSOR_FILES
from grpo_datasets_vision.tiny_model.warm_up import WarmUp

__all__ = ["write_folder"]

_README = """\
# clevr-count-tiny

A vision-language model of {parameters:,} parameters that was warmed up on counting the objects in rendered scenes, so
that GRPO has something to improve on a laptop. It knows the form of an answer and mostly says too little.

Made by

    {command}

(`src/grpo_datasets_vision/tiny_model/`; needs grpo-rewards-math): random weights, then {updates} updates of {batch}
scenes each, of the training split only. The answers were those of a careless counter, who is right one time in four and
else overlooks one or two objects. No other picture, text or model was used.

* Architecture: Qwen2-VL; vision tower and text model have 2 layers each, hidden size 96. Weights in bf16.
* Pictures of 112 x 112 pixels are 16 visual tokens.
* Tokenizer: byte-level BPE with {vocabulary} tokens; any text can be encoded. ChatML-like chat template.

License: Apache-2.0.
"""


def write_folder(
    folder: Path, model: Qwen2VLForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, settings: WarmUp
) -> None:
    """Write the model in Hugging Face layout; existing files of the same names are replaced."""
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True
    )
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name, content in PROCESSOR_FILES.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in asdict(settings).items())
    text = _README.format(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        command=f"python -m grpo_datasets_vision.tiny_model OUT {flags}",
        updates=settings.updates,
        batch=settings.batch,
        vocabulary=model.config.get_text_config().vocab_size,
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
