"""The tiny model's tokenizer: any text can be written, digits are single tokens, and images have their placeholders."""

from __future__ import annotations

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from grpo_rewards_math.tiny_model.tokenizer import build_tokenizer

__all__ = ["CONTEXT_TOKENS", "IMAGE_TOKENS", "build_vision_tokenizer"]

CONTEXT_TOKENS = 512
IMAGE_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TEXTS = ("How many objects are there?", "user", "assistant", "system")


def build_vision_tokenizer() -> PreTrainedTokenizerFast:
    """Build it; the same every time."""
    tokenizer = build_tokenizer(_TEXTS, vocabulary=320)
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in IMAGE_TOKENS])
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.model_max_length = CONTEXT_TOKENS
    return tokenizer
