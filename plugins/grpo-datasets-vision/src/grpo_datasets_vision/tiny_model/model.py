"""A fresh Qwen2-VL of 0.6 M parameters, and the settings of its image processor.

What matters for learning from few pictures: mean and deviation of images are those of these scenes, whose ground
becomes 0, and not of photographs; and the weights start larger than usual.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration

from grpo_datasets_vision.tiny_model.task import TASK
from grpo_datasets_vision.tiny_model.tokenizer import CONTEXT_TOKENS, IMAGE_TOKENS

__all__ = ["PROCESSOR_FILES", "fresh_model"]

_SIZE, _HEADS, _LAYERS = 96, 3, 2
_INITIALIZER_RANGE = 0.08
_PATCH, _MERGE = 14, 2
_IMAGES: dict[str, Any] = {
    "patch_size": _PATCH,
    "merge_size": _MERGE,
    "temporal_patch_size": 2,
    "size": {"shortest_edge": (2 * _PATCH) ** 2 * 4, "longest_edge": TASK.pixels**2},
    "image_mean": [0.7, 0.7, 0.7],
    "image_std": [0.2, 0.2, 0.2],
}
PROCESSOR_FILES: dict[str, dict[str, Any]] = {
    "preprocessor_config.json": {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2VLProcessor",
        **_IMAGES,
    },
    # Read where torchvision is installed, and by vLLM.
    "video_preprocessor_config.json": {"video_processor_type": "Qwen2VLVideoProcessor", **_IMAGES},
}


def fresh_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen2VLForConditionalGeneration:
    """Build the model with random weights."""
    start, end, image, video = (tokenizer.convert_tokens_to_ids(token) for token in IMAGE_TOKENS)
    config = Qwen2VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": _SIZE,
            "intermediate_size": 2 * _SIZE,
            "num_hidden_layers": _LAYERS,
            "num_attention_heads": _HEADS,
            "num_key_value_heads": 1,
            "max_position_embeddings": CONTEXT_TOKENS,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]},
            "initializer_range": _INITIALIZER_RANGE,
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={
            "depth": _LAYERS,
            "embed_dim": _SIZE,
            "hidden_size": _SIZE,
            "num_heads": _HEADS,
            "mlp_ratio": 2,
            "patch_size": _PATCH,
            "spatial_merge_size": _MERGE,
            "temporal_patch_size": 2,
            "in_channels": 3,
            "initializer_range": _INITIALIZER_RANGE,
        },
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return Qwen2VLForConditionalGeneration(config)
