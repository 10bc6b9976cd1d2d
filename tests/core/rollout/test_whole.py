from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from grpo_core.rollout.whole import WholeDecoder
from tests.core.rollout.teacher import assert_teacher_forced, prompts_of, run
from tests.tiny_models import make_model

KEEP = {4: [0, 1, 13, 3, 12, 5], 9: [0, 2, 4]}


@pytest.mark.parametrize("budget_tokens", [1, 40, 10_000])
def test_logprobs_are_those_of_a_forward_alone_however_many_rows_share_a_pass(budget_tokens: int) -> None:
    model = make_model("gemma2")
    assert_teacher_forced(model, run(model, WholeDecoder(model, budget_tokens=budget_tokens), prompts_of(), 12, KEEP))


def test_a_family_that_takes_neither_positions_nor_a_choice_of_logits_does_too() -> None:
    class Simple(transformers.LlamaForCausalLM):
        def forward(self, input_ids: Any, use_cache: bool) -> Any:
            return super().forward(input_ids, use_cache=use_cache)

    torch.manual_seed(0)
    model = Simple(make_model("llama").config).eval()
    assert_teacher_forced(model, run(model, WholeDecoder(model, budget_tokens=40), prompts_of((2, 5)), 3, {}))
