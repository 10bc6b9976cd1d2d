"""Tiny models whose attention is not the common one: they decode the plain way."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from tests.tiny_models import SHAPE


def make_sinks_model() -> Any:
    """gpt-oss: attention with learned sinks."""
    shape = {**SHAPE, "vocab_size": 272, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 8}
    torch.manual_seed(0)
    return transformers.GptOssForCausalLM(transformers.GptOssConfig(**shape)).eval()


def make_linear_attention_model() -> Any:
    """LFM2: short convolutions beside attention."""
    shape = {**SHAPE, "vocab_size": 272, "layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False}
    torch.manual_seed(0)
    return transformers.Lfm2ForCausalLM(transformers.Lfm2Config(**shape)).eval()


def make_own_attention_model() -> Any:
    """Bloom: attention of its own with ALiBi, and no positions to be given."""
    config = transformers.BloomConfig(vocab_size=272, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.2)
    torch.manual_seed(0)
    return transformers.BloomForCausalLM(config).eval()
