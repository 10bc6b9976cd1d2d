"""Tiny random vision-language models in Hugging Face layout, made offline in well under a second: weights, tokenizer,
chat template, generation config, and the processor's files as they are on the hub.

Not trained: for tests of the whole path of images, on each family's real code. Nothing here needs torchvision.

Example: `folder = make_vl_folder("qwen2_vl", tmp_path / "model")`
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

import torch
import transformers
from PIL import Image, ImageDraw

from tests.tiny_models import END_ID, PAD_ID, SMALLEST_VOCAB_SIZE, make_tokenizer

VlFamily = Literal["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "idefics3", "smolvlm"]
VL_FAMILIES: tuple[VlFamily, ...] = get_args(VlFamily)

_TILES = [f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)]
_IMAGE_TOKENS = (
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"),
    *("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", *_TILES),
)
_ID = {token: SMALLEST_VOCAB_SIZE + place for place, token in enumerate(_IMAGE_TOKENS)}
VOCAB_SIZE = SMALLEST_VOCAB_SIZE + len(_IMAGE_TOKENS)

_QWEN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_IDEFICS_TEMPLATE = (  # loops over parts, and writes nothing of a content that is a plain text
    "{% for message in messages %}{{ message['role'] | capitalize }}"
    "{% if message['content'][0]['type'] == 'image' %}:{% else %}: {% endif %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% elif part['type'] == 'image' %}<image>{% endif %}"
    "{% endfor %}<end_of_utterance>\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)

_TEXT: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 4096,
    "initializer_range": 0.2,
    "bos_token_id": None,
    "eos_token_id": END_ID,
    "pad_token_id": PAD_ID,
}
_MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}
_QWEN_IDS = {
    "image_token_id": _ID["<|image_pad|>"],
    "video_token_id": _ID["<|video_pad|>"],
    "vision_start_token_id": _ID["<|vision_start|>"],
    "vision_end_token_id": _ID["<|vision_end|>"],
}
_TOWER: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "num_heads": 2, "out_hidden_size": 64}


def make_vl_folder(
    family: VlFamily,
    directory: Path,
    *,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    words: Sequence[str] = (),
    **text: Any,
) -> Path:
    """Write a model of this family into `directory` and return it; `text` changes the text model's config.

    Texts are bytes (tokens 0 to 255), so every prompt can be spelled; the image tokens come behind them. An image of
    Qwen's families has 4 to 64 visual tokens, of 28 x 28 pixels (Qwen3-VL: 32 x 32); Idefics3 and SmolVLM cut it into
    tiles of 4 tokens, and the whole is one more. Each of `words` is one token, which keeps long prompts short.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _BUILDERS[family]({**_TEXT, "vocab_size": VOCAB_SIZE + len(words), **text})
    ends = [END_ID] if family.startswith("qwen") else [END_ID, _ID["<end_of_utterance>"]]
    model.generation_config.eos_token_id = ends
    model.generation_config.pad_token_id = PAD_ID
    model.to(dtype).eval().save_pretrained(directory)
    make_vl_tokenizer(family, words).save_pretrained(directory)
    for name, content in _PROCESSORS[family].items():
        (directory / name).write_text(json.dumps(content, indent=2), encoding="utf-8")
    return directory


def make_vl_tokenizer(family: VlFamily, words: Sequence[str] = ()) -> Any:
    """The tokenizer of a folder, with the family's chat template; `words` are no two alike."""
    tokenizer = make_tokenizer(_QWEN_TEMPLATE if family.startswith("qwen") else _IDEFICS_TEMPLATE)
    tokenizer.model_max_length = _TEXT["max_position_embeddings"]
    tokenizer.add_tokens(list(_IMAGE_TOKENS), special_tokens=True)
    if words:
        tokenizer.add_tokens(list(words))
    return tokenizer


def make_picture(seed: int, size: tuple[int, int] = (80, 64)) -> Image.Image:
    """A few coloured discs: no two seeds look alike. `size` is width and height in pixels."""
    random = Random(f"picture {seed}")
    picture = Image.new("RGB", size, _colour(random))
    draw = ImageDraw.Draw(picture)
    for _ in range(1 + seed % 5):
        x, y, radius = random.randrange(size[0]), random.randrange(size[1]), random.randrange(4, 16)
        draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=_colour(random))
    return picture


def encoded_picture(seed: int, size: tuple[int, int] = (80, 64), format: str = "PNG") -> bytes:
    """`make_picture` as a file."""
    file = io.BytesIO()
    make_picture(seed, size).save(file, format=format)
    return file.getvalue()


def _colour(random: Random) -> tuple[int, int, int]:
    return random.randrange(256), random.randrange(256), random.randrange(256)


def _qwen2_vl(text: dict[str, Any]) -> Any:
    tower = {"depth": 2, "embed_dim": 64, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14}
    config = transformers.Qwen2VLConfig(
        text_config={**text, "rope_parameters": _MROPE}, vision_config=tower, tie_word_embeddings=True, **_QWEN_IDS
    )
    return transformers.Qwen2VLForConditionalGeneration(config)


def _qwen2_5_vl(text: dict[str, Any]) -> Any:
    tower = {**_TOWER, "depth": 2, "patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1]}
    config = transformers.Qwen2_5_VLConfig(
        text_config={**text, "rope_parameters": _MROPE}, vision_config=tower, tie_word_embeddings=True, **_QWEN_IDS
    )
    return transformers.Qwen2_5_VLForConditionalGeneration(config)


def _qwen3_vl(text: dict[str, Any]) -> Any:
    tower = {**_TOWER, "depth": 3, "patch_size": 16, "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1]}
    config = transformers.Qwen3VLConfig(
        text_config={**text, "head_dim": 32, "rope_parameters": {**_MROPE, "mrope_interleaved": True}},
        vision_config=tower,
        tie_word_embeddings=True,
        **_QWEN_IDS,
    )
    return transformers.Qwen3VLForConditionalGeneration(config)


def _idefics(config_class: Any, model_class: Any) -> Callable[[dict[str, Any]], Any]:
    tower = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2}

    def build(text: dict[str, Any]) -> Any:
        config = config_class(
            text_config={**text, "model_type": "llama"},
            vision_config={**tower, "image_size": 56, "patch_size": 14},
            scale_factor=2,
            image_token_id=_ID["<image>"],
            pad_token_id=PAD_ID,
        )
        return model_class(config)

    return build


_BUILDERS: Mapping[VlFamily, Callable[[dict[str, Any]], Any]] = {
    "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5_vl,
    "qwen3_vl": _qwen3_vl,
    "idefics3": _idefics(transformers.Idefics3Config, transformers.Idefics3ForConditionalGeneration),
    "smolvlm": _idefics(transformers.SmolVLMConfig, transformers.SmolVLMForConditionalGeneration),
}


def _qwen_files(processor: str, patch: int) -> dict[str, Any]:
    """The files of Qwen's models on the hub; that for videos is read where torchvision is installed."""
    side = 2 * patch
    content = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": processor,
        "patch_size": patch,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "size": {"shortest_edge": 4 * side * side, "longest_edge": 64 * side * side},
    }
    videos = {"Qwen3VLProcessor": "Qwen3VLVideoProcessor"}.get(processor, "Qwen2VLVideoProcessor")
    of_videos = {name: content[name] for name in ("patch_size", "merge_size", "temporal_patch_size", "size")}
    return {
        "preprocessor_config.json": content,
        "video_preprocessor_config.json": {"video_processor_type": videos, **of_videos},
    }


def _idefics_files(name: str) -> dict[str, Any]:
    images = {
        "image_processor_type": f"{name}ImageProcessor",
        "processor_class": f"{name}Processor",
        "size": {"longest_edge": 112},
        "max_image_size": {"longest_edge": 56},
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    whole = {"processor_class": f"{name}Processor", "image_seq_len": 4}
    return {"preprocessor_config.json": images, "processor_config.json": whole}


_PROCESSORS: Mapping[VlFamily, dict[str, Any]] = {
    "qwen2_vl": _qwen_files("Qwen2VLProcessor", 14),
    "qwen2_5_vl": _qwen_files("Qwen2_5_VLProcessor", 14),
    "qwen3_vl": _qwen_files("Qwen3VLProcessor", 16),
    "idefics3": _idefics_files("Idefics3"),
    "smolvlm": _idefics_files("SmolVLM"),
}
