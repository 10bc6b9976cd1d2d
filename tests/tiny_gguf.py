"""Tiny random Llama models as GGUF files, written as llama.cpp's converter writes them, and what must come out.

Example: `weights = make_gguf(tmp_path / "tiny.gguf", quantisation="Q8_0")`
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import torch

from tests.tiny_models import CHAT_TEMPLATE, END, PAD, START, make_model

HIDDEN, HEADS, KV_HEADS, LAYERS, INNER, CONTEXT = 32, 4, 2, 2, 64, 256
SPECIAL_TOKENS = (PAD, START, END)
PAD_ID, START_ID, END_ID = 257, 258, 259
VOCAB_SIZE = 288
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def make_gguf(
    path: Path,
    *,
    quantisation: Literal["F32", "Q8_0", "Q4_1"] = "F32",
    tied: bool = False,
    chat_template: str | None = CHAT_TEMPLATE,
    turn_end: int | None = None,
    pad: bool = True,
) -> dict[str, torch.Tensor]:
    """Write the file; gives the weights it stands for, by their Hugging Face names, rounding of the quantisation
    included. `turn_end`: a second end token."""
    model = make_model(
        "llama", vocab_size=VOCAB_SIZE, intermediate_size=INNER, tie_word_embeddings=tied, pad_token_id=PAD_ID
    )
    writer = gguf.GGUFWriter(path, "llama")
    _write_shape(writer)
    _write_tokenizer(writer, chat_template, turn_end, pad)
    expected = {}
    for name, weight in model.named_parameters():
        stored = _permuted(name, weight.detach()).numpy()
        kind = gguf.GGMLQuantizationType[quantisation if stored.ndim == 2 else "F32"]
        data = gguf.quants.quantize(stored, kind)
        writer.add_tensor(_gguf_name(name), data, raw_dtype=kind)
        rounded = torch.from_numpy(gguf.quants.dequantize(data, kind).astype(np.float32))
        expected[name] = _unpermuted(name, rounded)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


def _write_shape(writer: Any) -> None:
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCAB_SIZE)


def _write_tokenizer(writer: Any, chat_template: str | None, turn_end: int | None, pad: bool) -> None:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    spelled = sorted(bytes_to_unicode().values())
    unused = [f"<|unused_{index}|>" for index in range(VOCAB_SIZE - 257 - len(SPECIAL_TOKENS))]
    tokens = [*spelled, "he", *SPECIAL_TOKENS, *unused]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 257 + [3] * (VOCAB_SIZE - 257))
    writer.add_token_merges(["h e"])
    writer.add_eos_token_id(END_ID)
    writer.add_add_bos_token(False)
    if pad:
        writer.add_pad_token_id(PAD_ID)
    if turn_end is not None:
        writer.add_eot_token_id(turn_end)
    if chat_template is not None:
        writer.add_chat_template(chat_template)


def _gguf_name(name: str) -> str:
    if name.startswith("model.layers."):
        _, _, layer, rest = name.split(".", 3)
        return f"blk.{layer}.{NAMES[rest.removesuffix('.weight')]}.weight"
    return {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }[name]


def _permuted(name: str, weight: torch.Tensor) -> torch.Tensor:
    """llama.cpp wants the two halves of each rotary head interleaved."""
    heads = _rotary_heads(name)
    if heads is None:
        return weight
    return weight.reshape(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape).contiguous()


def _unpermuted(name: str, weight: torch.Tensor) -> torch.Tensor:
    heads = _rotary_heads(name)
    if heads is None:
        return weight
    return weight.reshape(heads, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def _rotary_heads(name: str) -> int | None:
    if "q_proj" in name:
        return HEADS
    return KV_HEADS if "k_proj" in name else None
