"""The tiny model's tokenizer: any text can be written with it, and Countdown takes few tokens.

Byte-level BPE: each of the 256 bytes is a token, so nothing is unknown; words of the Countdown prompts are tokens of
their own. Digits and operators are never merged, so that a number reads the same wherever it stands. The tags are
added tokens but not special ones: decoding keeps them for the rewards.
"""

from __future__ import annotations

from collections.abc import Iterator

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.wording import render

__all__ = ["CHAT_TEMPLATE", "CONTEXT_TOKENS", "build_tokenizer"]

CONTEXT_TOKENS = 1024

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_END_OF_TEXT, _END_OF_TURN = "<|endoftext|>", "<|im_end|>"
_SPECIAL = (_END_OF_TEXT, "<|im_start|>", _END_OF_TURN)
_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_ROLES = ("system", "user", "assistant")
_REPEATS = 10
"""How often the trainer reads its few texts: a pair must be frequent to become a token."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Build the tokenizer; the same every time."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[-+*/=()]"), "isolated"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=512, min_frequency=2, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator(_texts(), trainer)
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in _SPECIAL])
    bpe.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in _TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=_END_OF_TURN,
        pad_token=_END_OF_TEXT,
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
    )


def _texts() -> Iterator[str]:
    for _ in range(_REPEATS):
        yield from _ROLES
        for style in ("full", "short"):
            prompt = render(CountdownOptions(style=style), (5, 3, 2), 17)
            for tag in _TAGS:
                prompt = prompt.replace(tag, " ")
            yield prompt
