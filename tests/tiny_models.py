"""Tiny random causal models in Hugging Face layout, with a byte-level tokenizer, made offline in well under a second.

Not trained: for tests of loading, generation and updates, on any family's real architecture code.

Example: `folder = make_model_folder(tmp_path / "model", family="gemma2")`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

Family = Literal["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "granite", "cohere"]
FAMILIES: tuple[Family, ...] = get_args(Family)

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL_TOKENS = (PAD, START, END)
PAD_ID, START_ID, END_ID = 256, 257, 258
SMALLEST_VOCAB_SIZE = 256 + len(SPECIAL_TOKENS)
DEFAULT_VOCAB_SIZE = 272

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
    "bos_token_id": None,
    "eos_token_id": END_ID,
    "pad_token_id": PAD_ID,
}
LAYER_TYPES = ["sliding_attention", "full_attention"]


def make_model_folder(
    path: Path,
    family: Family = "qwen3",
    vocab_size: int = DEFAULT_VOCAB_SIZE,
    dtype: torch.dtype = torch.float32,
    chat_template: bool | str = True,
    seed: int = 0,
    end_ids: Sequence[int] | None = None,
    tokenizer: Mapping[str, Any] | None = None,
    **config: Any,
) -> Path:
    """Write model, tokenizer and generation config into `path` and return it; `config` changes the model's config.

    Tokens 0 to 255 are bytes, then come `SPECIAL_TOKENS`; a larger vocabulary only pads the embedding. `end_ids` are
    those of the generation config (default: `END_ID`), `tokenizer` arguments of `make_tokenizer`.
    """
    model = make_model(family, vocab_size, dtype, seed, **config)
    if end_ids is not None:
        model.generation_config.eos_token_id = list(end_ids) or None
    model.save_pretrained(path)
    make_tokenizer(chat_template, **(tokenizer or {})).save_pretrained(path)
    return path


def make_model(
    family: Family = "qwen3",
    vocab_size: int = DEFAULT_VOCAB_SIZE,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    **config: Any,
) -> Any:
    """A randomly initialised model with about 30,000 parameters; the global random state stays as it was."""
    if vocab_size < SMALLEST_VOCAB_SIZE:
        raise ValueError(f"the tokenizer needs a vocabulary of at least {SMALLEST_VOCAB_SIZE} tokens, not {vocab_size}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _BUILDERS[family](**{**SHAPE, "vocab_size": vocab_size, **config})
    model.generation_config.eos_token_id = END_ID
    model.generation_config.pad_token_id = PAD_ID
    return model.to(dtype).eval()


def make_tokenizer(
    chat_template: bool | str = True,
    *,
    pad: str | None = PAD,
    end: str | None = END,
    begin: str | None = None,
    more: Sequence[str] = (),
) -> Any:
    """A tokenizer whose tokens are bytes: every text survives encode and decode.

    `chat_template` is a template, or whether to have `CHAT_TEMPLATE`. `more` tokens come behind `SPECIAL_TOKENS`; so do
    `pad` and `begin` (BOS) when they are others.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {character: index for index, character in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        eos_token=end,
        bos_token=begin,
        additional_special_tokens=[START],
        model_max_length=SHAPE["max_position_embeddings"],
        clean_up_tokenization_spaces=False,
    )
    if more:
        fast.add_tokens(list(more))
    if chat_template:
        fast.chat_template = CHAT_TEMPLATE if chat_template is True else chat_template
    return fast


def _llama(**config: Any) -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))


def _mistral(**config: Any) -> Any:
    return transformers.MistralForCausalLM(transformers.MistralConfig(**{"sliding_window": 8, **config}))


def _qwen2(**config: Any) -> Any:
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**{"tie_word_embeddings": True, **config}))


def _qwen3(**config: Any) -> Any:
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**{"tie_word_embeddings": True, **config}))


def _gemma(**config: Any) -> Any:
    return transformers.GemmaForCausalLM(transformers.GemmaConfig(**config))


def _gemma2(**config: Any) -> Any:
    sliding = {"sliding_window": 8, "layer_types": LAYER_TYPES, "query_pre_attn_scalar": 8}
    return transformers.Gemma2ForCausalLM(
        transformers.Gemma2Config(**{**sliding, "final_logit_softcapping": 5.0, **config})
    )


def _gemma3(**config: Any) -> Any:
    sliding = {"sliding_window": 8, "layer_types": LAYER_TYPES, "query_pre_attn_scalar": 8}
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**{**sliding, **config}))


def _granite(**config: Any) -> Any:
    scaling = {"logits_scaling": 4.0, "embedding_multiplier": 2.0, "residual_multiplier": 0.5}
    return transformers.GraniteForCausalLM(transformers.GraniteConfig(**{**scaling, **config}))


def _cohere(**config: Any) -> Any:
    return transformers.CohereForCausalLM(transformers.CohereConfig(**{"logit_scale": 0.25, **config}))


_BUILDERS: dict[Family, Callable[..., Any]] = {
    "llama": _llama,
    "mistral": _mistral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "granite": _granite,
    "cohere": _cohere,
}
