from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grpo_core.rollout.plain import PlainDecoder
from tests.core.rollout.odd_models import make_linear_attention_model, make_own_attention_model, make_sinks_model
from tests.core.rollout.teacher import assert_teacher_forced, prompts_of, run
from tests.tiny_models import Family, make_model

KEEP = {4: [0, 1, 13, 3, 12, 5], 9: [0, 2, 4]}


@pytest.mark.parametrize("family", ["qwen3", "gemma2", "mistral"])
def test_logprobs_are_those_of_a_plain_forward_over_prompt_and_completion(family: Family) -> None:
    model = make_model(family)
    assert_teacher_forced(model, run(model, PlainDecoder(model), prompts_of(), 14, KEEP))


@pytest.mark.parametrize("make", [make_sinks_model, make_linear_attention_model, make_own_attention_model])
def test_so_are_those_of_models_that_no_shared_prefix_fits(make: Callable[[], Any]) -> None:
    model = make()
    assert_teacher_forced(model, run(model, PlainDecoder(model), prompts_of(), 14, KEEP))
