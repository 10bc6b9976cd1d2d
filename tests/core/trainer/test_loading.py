"""What every trainer begins with; loading itself is in the tests of the trainers."""

from __future__ import annotations

from typing import Literal

import pytest

from grpo_core.errors import TrainerError
from grpo_core.training import policy_or_reference


def asked(of: Literal["policy", "reference"], reference: str | None, *, beta: float) -> str:
    with policy_or_reference(of, "the policy", reference, model=None, beta=beta) as module:
        return module


def test_log_probabilities_are_asked_of_the_one_that_is_meant() -> None:
    assert asked("policy", "the reference", beta=0.1) == "the policy"
    assert asked("reference", "the reference", beta=0.1) == "the reference"


def test_an_objective_without_kl_has_no_reference_to_ask() -> None:
    with pytest.raises(TrainerError, match="no reference model is loaded"):
        asked("reference", None, beta=0.0)
