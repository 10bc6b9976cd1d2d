"""Cases about tokens: where a completion ends, and what is done with tokenizers of every kind."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from grpo_core.errors import GrpoError
from grpo_core.model.tokenizer import load_tokenizer, render_prompt, template_warning
from grpo_core.recipe.schema import ModelSettings
from grpo_core.rollout.forward import left_padded
from grpo_core.rollout.prompts import text_prompts
from grpo_core.rollout.stop import CompletionText, StopRule
from grpo_core.types import FinishReason, Message, SamplingParams
from tests.cases.expect import ClearError, difference
from tests.tiny_models import make_tokenizer

__all__ = ["check_end_of_sequence", "check_tokenizer"]


class _TableTokenizer:
    """Decodes by a table."""

    def __init__(self, table: Mapping[str, str], pad_token_id: int | None) -> None:
        self._table = table
        self.pad_token_id = pad_token_id

    def decode(self, token_ids: Sequence[int], **_options: object) -> str:
        return "".join(self._table.get(str(token), "") for token in token_ids)


def check_end_of_sequence(case: Mapping[str, Any]) -> str | None:
    """Feed the case's tokens to the stop rule as the model would draw them."""
    rows = case["completion_ids"]
    rows = rows if isinstance(rows[0], list) else [rows]
    tokenizer: Any = _TableTokenizer(case.get("decoded", {}), case.get("pad_token_id"))
    text = CompletionText(tokenizer, case["eos_token_ids"])
    params = SamplingParams(max_tokens=case.get("max_completion_length", len(rows[0])))
    kept = [_until_the_end(row, StopRule(params, text)) for row in rows]
    return difference(
        {
            "text_scored": text(kept[0][0]),
            "truncated": [reason is FinishReason.LENGTH for _ids, reason in kept],
            "mask": [[int(i < len(ids)) for i in range(len(row))] for row, (ids, _) in zip(rows, kept, strict=True)],
        },
        case,
    )  # fmt: skip


def check_tokenizer(case: Mapping[str, Any]) -> str | None:
    """Load a tokenizer of the case's kind from a folder, and prepare prompts with it."""
    settings = case["tokenizer"]
    with tempfile.TemporaryDirectory() as folder:
        made = make_tokenizer(chat_template=False)
        for name, value in settings.items():
            setattr(made, name, value)
        made.save_pretrained(folder)
        try:
            tokenizer = load_tokenizer(ModelSettings(path=folder))
            prompts = [
                render_prompt([Message(role="user", content=text)], tokenizer).token_ids
                for text in case.get("prompts", ["hi"])
            ]
        except GrpoError as error:
            return difference(ClearError(str(error)), case)
    padded = left_padded(text_prompts(prompts), torch.device("cpu"))
    ends_with_prompt = all(row[-1] == prompt[-1] for row, prompt in zip(padded.ids_PL.tolist(), prompts, strict=True))
    return difference(
        {
            "accepted": True,
            "pad_token": "eos" if tokenizer.pad_token == tokenizer.eos_token else tokenizer.pad_token,
            "documented_fallback_template": template_warning(tokenizer) is not None,
            "padding_side_for_generation": "left" if ends_with_prompt else "right",
        },
        case,
    )


def _until_the_end(row: Sequence[int], ends: StopRule) -> tuple[list[int], FinishReason | None]:
    for count in range(1, len(row) + 1):
        reason = ends(row[:count])
        if reason is not None:
            return list(row[:count]), reason
    return list(row), None
