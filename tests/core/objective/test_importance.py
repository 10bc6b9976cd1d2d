"""Each correction by hand, and what it never does."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from grpo_core.objective.importance import importance
from grpo_core.recipe.schema import ImportanceSettings
from tests.core.objective.batches import prefix_mask, rows

# Completion 1: weights 4, 1/4, 1 (geometric mean 1). Completion 2: 4, 1 (geometric mean 2). The rest is padding.
RATIOS_BT = rows([4.0, 0.25, 1.0], [4.0, 1.0])
MASK_BT = prefix_mask([3, 2])


def weights(correction: str, cap: float) -> Tensor:
    settings = ImportanceSettings(correction=correction, cap=cap)  # type: ignore[arg-type]
    trainer_BT = rows([0.1, 0.2, 0.3], [0.4, 0.5]).log()
    return importance(trainer_BT, trainer_BT - RATIOS_BT.log(), MASK_BT, settings).weights_BT


@pytest.mark.parametrize(
    ("correction", "cap", "expected"),
    [
        ("off", 2.0, rows([1, 1, 1], [1, 1, 1])),
        ("token_truncate", 2.0, rows([2, 0.25, 1], [2, 1, 1])),
        ("token_mask", 2.0, rows([0, 0, 1], [0, 1, 1])),
        ("token_mask", 5.0, rows([4, 0.25, 1], [4, 1, 1])),
        ("sequence_truncate", 1.5, rows([1, 1, 1], [1.5, 1.5, 1])),
        ("sequence_mask", 1.5, rows([1, 1, 1], [0, 0, 1])),
        ("sequence_mask", 3.0, rows([1, 1, 1], [2, 2, 1])),
    ],
)
def test_each_correction_by_hand(correction: str, cap: float, expected: Tensor) -> None:
    torch.testing.assert_close(weights(correction, cap), expected)


def test_raw_ratios_and_gaps_are_those_before_the_cap() -> None:
    trainer_BT = torch.zeros(2, 3, dtype=torch.float64)
    result = importance(
        trainer_BT, trainer_BT - RATIOS_BT.log(), MASK_BT, ImportanceSettings(correction="token_truncate", cap=2)
    )
    torch.testing.assert_close(result.raw_BT, rows([4, 0.25, 1], [4, 1, 1]))
    torch.testing.assert_close(result.gaps_BT, rows([math.log(4), -math.log(4), 0], [math.log(4), 0, 0]))
    assert result.bounded_BT.tolist() == [[True, False, False], [True, False, False]]


def test_for_a_whole_completion_the_raw_ratio_is_its_geometric_mean() -> None:
    trainer_BT = torch.zeros(2, 3, dtype=torch.float64)
    result = importance(
        trainer_BT, trainer_BT - RATIOS_BT.log(), MASK_BT, ImportanceSettings(correction="sequence_mask", cap=1.5)
    )
    torch.testing.assert_close(result.raw_BT, rows([1, 1, 1], [2, 2, 1]))
    assert result.bounded_BT.tolist() == [[False, False, False], [True, True, False]]


def test_switched_off_it_still_compares_engine_and_trainer_and_bounds_nothing() -> None:
    trainer_BT = torch.zeros(2, 3, dtype=torch.float64)
    result = importance(trainer_BT, trainer_BT - RATIOS_BT.log(), MASK_BT, ImportanceSettings(correction="off"))
    torch.testing.assert_close(result.raw_BT, rows([4, 0.25, 1], [4, 1, 1]))
    assert not result.bounded_BT.any()


@pytest.mark.parametrize("correction", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"])
def test_an_engine_that_agrees_changes_nothing(correction: str) -> None:
    logprobs_BT = rows([-1.0, -2.0], [-3.0])
    settings = ImportanceSettings(correction=correction, cap=1.001)  # type: ignore[arg-type]
    result = importance(logprobs_BT, logprobs_BT, prefix_mask([2, 1]), settings)
    assert (result.weights_BT == 1).all()


def test_no_gradient_flows_through_a_weight() -> None:
    trainer_BT = torch.zeros(1, 2, requires_grad=True)
    result = importance(trainer_BT, torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool), ImportanceSettings())
    assert not result.weights_BT.requires_grad


def test_a_token_the_engine_thought_impossible_gets_the_cap_not_infinity() -> None:
    sampler_BT = torch.tensor([[-math.inf, -1.0]])
    result = importance(torch.full((1, 2), -1.0), sampler_BT, torch.ones(1, 2, dtype=torch.bool), ImportanceSettings())
    assert result.weights_BT.tolist() == [[2.0, 1.0]]
