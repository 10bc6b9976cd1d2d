"""Families of models, each decoded as docs/models.md says, with the log-probabilities of whole forwards."""

from __future__ import annotations

import pytest

from grpo_core.rollout.choose import choose_decoder
from grpo_core.rollout.plain import PlainDecoder
from grpo_core.rollout.prefix import PrefixDecoder
from grpo_core.rollout.whole import WholeDecoder
from tests.core.rollout.many_models import WAYS, make
from tests.core.rollout.teacher import assert_teacher_forced, prompts_of, run

DECODERS = {"shared prefixes": PrefixDecoder, "own cache": PlainDecoder, "whole forwards": WholeDecoder}
STEP_ROUNDING = {"Zamba2": 5e-3, "Nemotron-H": 2e-3, "Jamba": 1e-4}
"""Where scans over a prompt and single steps are rounded in other places."""


@pytest.mark.parametrize("name", WAYS)
def test_a_family_is_decoded_as_a_forward_over_the_whole_sequence_says(name: str) -> None:
    model = make(name)
    decoder = choose_decoder(model, prompts_of((3, 12)), prefill_tokens=30)(9)
    assert type(decoder) is DECODERS[WAYS[name]]
    seen = run(model, decoder, prompts_of((1, 3, 12)), 4, {2: [0, 2, 4]})
    assert_teacher_forced(model, seen, tolerance=STEP_ROUNDING.get(name, 2e-5))
