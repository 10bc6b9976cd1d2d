"""A tiny model's tokenizer: any text can be written with it, and the task it is made for takes few tokens.

Byte-level BPE: each of the 256 bytes is a token, so nothing is unknown; words of the task's texts are tokens of
their own. Digits and operators are never merged, so that a number reads the same wherever it stands. The tags are
added tokens but not special ones: decoding keeps them for the rewards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.wording import render

__all__ = ["CHAT_TEMPLATE", "CONTEXT_TOKENS", "build_tokenizer", "countdown_texts"]

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


def build_tokenizer(texts: Iterable[str], *, vocabulary: int = 512) -> PreTrainedTokenizerFast:
    """Build the tokenizer for a task's texts, of at most so many tokens before the added ones; the same every time."""
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
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(_repeated(texts), trainer)
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


def countdown_texts() -> Iterator[str]:
    """The prompts of Countdown in both wordings."""
    for style in ("full", "short"):
        yield render(CountdownOptions(style=style), (5, 3, 2), 17)


def _repeated(texts: Iterable[str]) -> Iterator[str]:
    """The texts again and again, with the roles of the chat template; tags are tokens anyway."""
    plain = list(texts)
    for tag in _TAGS:
        plain = [text.replace(tag, " ") for text in plain]
    for _ in range(_REPEATS):
        yield from _ROLES
        yield from plain
