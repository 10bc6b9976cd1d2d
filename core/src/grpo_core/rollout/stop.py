"""Where a completion ends, and the text of its tokens.

Text is decoded from all tokens but end and pad tokens; tags that are special tokens of the vocabulary (`<think>`)
stay, because rewards read them. Nothing is cleaned up: what the policy wrote is what is scored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from transformers import PreTrainedTokenizerBase

from grpo_core.types import FinishReason, SamplingParams

__all__ = ["CompletionText", "StopRule"]

_MARGIN_TOKENS = 8
"""Beyond one token a byte: room for characters of several tokens and for a first space that decoders drop."""


class CompletionText:
    """Token ids to text."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, end_ids: Collection[int]) -> None:
        self.end_ids = frozenset(end_ids)
        self._tokenizer = tokenizer
        self._hidden_ids = self.end_ids | {tokenizer.pad_token_id}

    def __call__(self, token_ids: Sequence[int]) -> str:
        """The text, without end and pad tokens."""
        shown = [token for token in token_ids if token not in self._hidden_ids]
        return str(self._tokenizer.decode(shown, skip_special_tokens=False, clean_up_tokenization_spaces=False))


class StopRule:
    """Says after each token whether the completion ends with it."""

    def __init__(self, params: SamplingParams, text: CompletionText) -> None:
        self._max_tokens = params.max_tokens
        self._stop = params.stop
        self._text = text
        self._window_tokens = _MARGIN_TOKENS + max((len(stop.encode()) for stop in params.stop), default=0)

    def __call__(self, token_ids: Sequence[int]) -> FinishReason | None:
        """Why a completion of these tokens ends here; None: it goes on."""
        if token_ids[-1] in self._text.end_ids or (self._stop and self._meets_stop(token_ids)):
            return FinishReason.STOP
        return FinishReason.LENGTH if len(token_ids) >= self._max_tokens else None

    def _meets_stop(self, token_ids: Sequence[int]) -> bool:
        # Only the last tokens can have completed it; the whole text confirms, as a window may begin inside a character.
        window = token_ids[-self._window_tokens :]
        if not self._occurs(window):
            return False
        return len(window) == len(token_ids) or self._occurs(token_ids)

    def _occurs(self, token_ids: Sequence[int]) -> bool:
        text = self._text(token_ids)
        return any(stop in text for stop in self._stop)
