"""AdamW with masters: small steps survive, gradients add up in fp32, only matrices decay."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from grpo_core.backends import TrainerSettings
from grpo_core.trainer.optimiser import Optimiser


class Weights(nn.Module):
    """A matrix and a vector of ones."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.ones(2, 2, dtype=dtype))
        self.vector = nn.Parameter(torch.ones(2, dtype=dtype))


def make(dtype: torch.dtype = torch.float32, **settings: Any) -> tuple[Weights, Optimiser]:
    weights = Weights(dtype)
    return weights, Optimiser(weights.named_parameters(), TrainerSettings(**{"max_grad_norm": None, **settings}))


def run_update(weights: Weights, optimiser: Optimiser, losses: list[float], learning_rate: float = 5e-7) -> float:
    """An update whose micro-batches have the loss `factor * sum of all weights`."""
    optimiser.begin()
    for factor in losses:
        torch.autograd.backward(factor * (weights.matrix.float().sum() + weights.vector.float().sum()))
    norm = optimiser.grad_norm()
    optimiser.step(learning_rate, norm)
    optimiser.end()
    return norm.item()


def test_steps_of_5e_7_on_a_bf16_weight_of_1_do_not_vanish() -> None:
    weights, optimiser = make(torch.bfloat16)
    run_update(weights, optimiser, [1.0])
    torch.testing.assert_close(optimiser.masters["matrix"], torch.full((2, 2), 1 - 5e-7), rtol=0, atol=6e-8)
    assert (weights.matrix == 1.0).all()
    for _ in range(500):  # together 2.5e-3, more than half the way to bf16's next value below 1, 0.99609375
        run_update(weights, optimiser, [1.0], learning_rate=5e-6)
    assert optimiser.masters["matrix"].dtype == torch.float32
    assert (weights.matrix == 0.99609375).all()


def test_in_fp32_the_weights_are_their_own_masters() -> None:
    weights, optimiser = make()
    assert optimiser.masters["matrix"] is weights.matrix
    run_update(weights, optimiser, [1.0])
    torch.testing.assert_close(weights.matrix.detach(), torch.full((2, 2), 1 - 5e-7), rtol=0, atol=6e-8)


def test_gradients_of_bf16_micro_batches_add_up_in_fp32() -> None:
    # In bf16 256 + 1 is 256: a sum there would lose every one of the small ones.
    weights, optimiser = make(torch.bfloat16)
    norm = run_update(weights, optimiser, [256.0, *[1.0] * 16])
    assert norm == pytest.approx(272.0 * 6**0.5, rel=1e-6)


def test_a_bf16_weight_has_one_gradient_the_masters() -> None:
    weights, optimiser = make(torch.bfloat16)
    optimiser.begin()
    torch.autograd.backward(weights.matrix.float().sum())
    assert weights.matrix.grad is optimiser.masters["matrix"].grad
    assert optimiser.gradients()[0].dtype == torch.float32
    assert optimiser.gradients()[0].sum() == 4.0
    optimiser.end()
    assert weights.matrix.grad is None


def test_weight_decay_is_for_matrices_only() -> None:
    weights, optimiser = make(weight_decay=0.5)
    run_update(weights, optimiser, [0.0], learning_rate=0.1)
    torch.testing.assert_close(weights.matrix.detach(), torch.full((2, 2), 0.95))
    assert (weights.vector == 1.0).all()


def test_a_step_without_any_backward_pass_moves_by_momentum() -> None:
    weights, optimiser = make()
    run_update(weights, optimiser, [1.0], learning_rate=0.01)
    after_one = weights.vector.detach().clone()
    assert run_update(weights, optimiser, [], learning_rate=0.01) == 0.0
    assert (weights.vector < after_one).all()


def test_a_long_gradient_is_shortened_and_a_short_one_left() -> None:
    for max_grad_norm, expected in ((0.5, 0.5), (100.0, 6**0.5)):
        weights, optimiser = make(max_grad_norm=max_grad_norm, adam_beta1=0.0)
        run_update(weights, optimiser, [1.0])
        moments = [value for key, value in optimiser.state().items() if key.startswith("exp_avg/")]
        assert torch.cat([moment.flatten() for moment in moments]).norm().item() == pytest.approx(expected, rel=1e-5)


def test_frozen_weights_are_left_alone() -> None:
    weights = Weights(torch.bfloat16)
    weights.vector.requires_grad_(False)
    optimiser = Optimiser(weights.named_parameters(), TrainerSettings())
    assert optimiser.masters.keys() == {"matrix"}
    run_update(weights, optimiser, [1.0])
    assert (weights.vector == 1.0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_state_goes_from_one_optimiser_to_another(dtype: torch.dtype) -> None:
    (first_weights, first), (second_weights, second) = make(dtype), make(dtype)
    run_update(first_weights, first, [1.0, 2.0], learning_rate=0.01)
    run_update(second_weights, second, [5.0], learning_rate=0.01)
    with torch.no_grad():
        for name, master in first.masters.items():
            second.masters[name].copy_(master)
    second.write_back()
    second.load_state({name: tensor.clone() for name, tensor in first.state().items()})
    for weights, optimiser in ((first_weights, first), (second_weights, second)):
        run_update(weights, optimiser, [3.0], learning_rate=0.01)
    for name, master in first.masters.items():
        assert torch.equal(master, second.masters[name])
    assert torch.equal(first_weights.matrix, second_weights.matrix)
    assert first.state().keys() == {
        f"{key}/{name}" for key in ("step", "exp_avg", "exp_avg_sq") for name in first.masters
    }


def test_loading_the_state_before_the_first_step_forgets_all_steps() -> None:
    weights, optimiser = make()
    fresh = optimiser.state()
    assert fresh == {}
    run_update(weights, optimiser, [1.0])
    optimiser.load_state(fresh)
    assert optimiser.state() == {}
