"""Tiny random models of many families, each with its own way of remembering what it read.

Logits are of a size at which a wrong context shows (`initializer_range` 0.2), and nothing here was trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
import transformers

from tests.tiny_models import SHAPE

VOCAB_SIZE = 272

_SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "initializer_range": 0.2}
_EXPERTS: dict[str, Any] = {**SHAPE, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_LOCAL_EXPERTS: dict[str, Any] = {**SHAPE, "num_local_experts": 4, "num_experts_per_tok": 2}
_LATENT: dict[str, Any] = {
    "q_lora_rank": 16,
    "kv_lora_rank": 8,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "n_shared_experts": 1,
    "num_key_value_heads": 4,
}
_GATED_DELTA: dict[str, Any] = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
_MAMBA_HEADS: dict[str, Any] = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1}


def make(name: str, **changes: Any) -> Any:
    """A model of a family of `MAKERS`, in eval mode; the global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MAKERS[name](changes).eval()


def _of(family: str, **config: Any) -> Callable[[dict[str, Any]], Any]:
    """Makes the causal model of a family from its config."""

    def build(changes: dict[str, Any]) -> Any:
        made = getattr(transformers, f"{family}Config")(**{"vocab_size": VOCAB_SIZE, **config, **changes})
        return transformers.AutoModelForCausalLM.from_config(made)

    return build


MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "RWKV": _of("Rwkv", **_SMALL, attention_hidden_size=32, intermediate_size=48),
    "Mamba": _of("Mamba", **_SMALL, state_size=8),
    "FalconMamba": _of("FalconMamba", **_SMALL, state_size=8),
    "Mamba2": _of("Mamba2", **_SMALL, state_size=8, num_heads=8, head_dim=8, n_groups=1),
    "Jamba": _of(
        "Jamba",
        **{**_EXPERTS, "num_hidden_layers": 4},
        attn_layer_period=2,
        attn_layer_offset=1,
        mamba_d_state=8,
        use_mamba_kernels=False,
    ),
    "Bamba": _of("Bamba", **SHAPE, **_MAMBA_HEADS, attn_layer_indices=[1]),
    "Zamba2": _of(
        "Zamba2",
        **{**SHAPE, "num_hidden_layers": 3},
        n_mamba_heads=8,
        mamba_headdim=8,
        mamba_d_state=8,
        mamba_ngroups=1,
        layers_block_type=["mamba", "mamba", "hybrid"],
        num_mem_blocks=1,
    ),
    "Falcon-H1": _of("FalconH1", **SHAPE, **_MAMBA_HEADS, mamba_d_ssm=64),
    "Nemotron-H": _of("NemotronH", **SHAPE, mamba_num_heads=8, mamba_head_dim=8, ssm_state_size=8, n_groups=1),
    "RecurrentGemma": _of(
        "RecurrentGemma", **SHAPE, lru_width=32, attention_window_size=8, block_types=["recurrent", "attention"]
    ),
    "Qwen3-Next": _of(
        "Qwen3Next",
        **_EXPERTS,
        **_GATED_DELTA,
        layer_types=["linear_attention", "full_attention"],
        shared_expert_intermediate_size=16,
    ),
    "Qwen3-Next of linear layers": _of(
        "Qwen3Next",
        **_EXPERTS,
        **_GATED_DELTA,
        layer_types=["linear_attention", "linear_attention"],
        shared_expert_intermediate_size=16,
    ),
    "Qwen3.5": _of("Qwen3_5Text", **SHAPE, **_GATED_DELTA, layer_types=["linear_attention", "full_attention"]),
    "OLMo hybrid": _of("OlmoHybrid", **SHAPE, **_GATED_DELTA, layer_types=["linear_attention", "full_attention"]),
    "LFM2": _of("Lfm2", **SHAPE, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False),
    "GraniteMoeHybrid": _of(
        "GraniteMoeHybrid",
        **_LOCAL_EXPERTS,
        **_MAMBA_HEADS,
        layer_types=["mamba", "attention"],
        shared_intermediate_size=16,
    ),
    "MiniMax": _of("MiniMax", **_LOCAL_EXPERTS, layer_types=["linear_attention", "full_attention"], block_size=4),
    "xLSTM": _of("xLSTM", **_SMALL, num_heads=4, num_blocks=2, chunk_size=8),
    "Mixtral": _of("Mixtral", **_LOCAL_EXPERTS),
    "Qwen2-MoE": _of("Qwen2Moe", **_EXPERTS, shared_expert_intermediate_size=16),
    "Qwen3-MoE": _of("Qwen3Moe", **_EXPERTS),
    "OLMoE": _of("Olmoe", **_EXPERTS),
    "GraniteMoE": _of("GraniteMoe", **_LOCAL_EXPERTS),
    "PhiMoE": _of("Phimoe", **_LOCAL_EXPERTS),
    "GPT-OSS": _of("GptOss", **_LOCAL_EXPERTS, sliding_window=8),
    "DeepSeek-V3": _of(
        "DeepseekV3",
        **{**SHAPE, **_LATENT, "head_dim": 4},
        n_routed_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
    ),
    "JetMoE": _of("JetMoe", **_LOCAL_EXPERTS, kv_channels=8),
    "Llama 4": _of("Llama4Text", **_LOCAL_EXPERTS, attention_chunk_size=8, intermediate_size_mlp=48),
    "GPT-2": _of("GPT2", n_embd=32, n_layer=2, n_head=4, n_positions=256, initializer_range=0.2),
    "GPT-NeoX": _of("GPTNeoX", **SHAPE),
    "GPT-J": _of("GPTJ", n_embd=32, n_layer=2, n_head=4, n_positions=256, rotary_dim=8, initializer_range=0.2),
    "OPT": _of("OPT", **{**SHAPE, "word_embed_proj_dim": 32, "ffn_dim": 48, "init_std": 0.2}),
    "Bloom": _of("Bloom", hidden_size=32, n_layer=2, n_head=4, initializer_range=0.2),
    "Phi-3": _of("Phi3", **SHAPE),
    "GLM-4": _of("Glm4", **SHAPE),
    "OLMo 2": _of("Olmo2", **SHAPE),
    "SmolLM3": _of("SmolLM3", **SHAPE, no_rope_layers=[1, 0]),
    "StarCoder2": _of("Starcoder2", **SHAPE, sliding_window=8),
    "Exaone 4": _of("Exaone4", **SHAPE, sliding_window=8, layer_types=["sliding_attention", "full_attention"]),
    "Ministral": _of("Ministral", **SHAPE, sliding_window=8, layer_types=["sliding_attention", "full_attention"]),
}

Way = Literal["shared prefixes", "own cache", "whole forwards"]

WAYS: dict[str, Way] = {
    **dict.fromkeys(MAKERS, "shared prefixes"),
    **dict.fromkeys(
        (
            *("Mamba", "FalconMamba", "Mamba2", "Jamba", "Bamba", "Zamba2", "Falcon-H1", "Nemotron-H", "Qwen3-Next"),
            *("Qwen3.5", "OLMo hybrid", "LFM2", "GraniteMoeHybrid", "GPT-OSS", "DeepSeek-V3", "JetMoE", "Llama 4"),
            "Bloom",
        ),
        "own cache",
    ),
    **dict.fromkeys(("RWKV", "RecurrentGemma", "Qwen3-Next of linear layers", "MiniMax", "xLSTM"), "whole forwards"),
}
"""How each is decoded."""
