"""Ratios, policy terms and cut tokens, number by number."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from grpo_core.objective.presets import resolve
from grpo_core.objective.surrogate import bounded_tokens, cut_tokens, policy_ratio, surrogate
from grpo_core.recipe.schema import ObjectiveSettings
from tests.core.objective.batches import LOSSES, prefix_mask, rows


def term(ratio: float, advantage: float, settings: ObjectiveSettings, logprob: float = -1.0) -> float:
    values = (torch.tensor([[value]], dtype=torch.float64) for value in (ratio, logprob, advantage))
    return surrogate(*values, resolve(settings)).item()


def slope(ratio: float, advantage: float, settings: ObjectiveSettings) -> float:
    """d term / d log policy at this ratio."""
    logprob_BT = torch.full((1, 1), -1.0, dtype=torch.float64, requires_grad=True)
    ratio_BT = (logprob_BT + 1.0 + math.log(ratio)).exp()
    surrogate(ratio_BT, logprob_BT, torch.full((1, 1), advantage).double(), resolve(settings)).sum().backward()
    assert logprob_BT.grad is not None
    return logprob_BT.grad.item()


def cut(ratio: float, advantage: float, settings: ObjectiveSettings) -> tuple[bool, bool]:
    low, high = cut_tokens(torch.tensor([[ratio]]), torch.tensor([[advantage]]), resolve(settings))
    return bool(low), bool(high)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.5, 1.0, -1.2),  # min(1.5, 1.2): the clip binds
        (0.5, 1.0, -0.5),  # min(0.5, 0.8): it does not
        (1.5, -2.0, 3.0),  # min(-3, -2.4): it does not
        (0.5, -2.0, 1.6),  # min(-1, -1.6): it binds
        (1.1, 1.0, -1.1),  # inside the range
    ],
)
def test_the_clipped_surrogate_takes_the_worse_of_both(ratio: float, advantage: float, expected: float) -> None:
    assert term(ratio, advantage, ObjectiveSettings(loss="grpo")) == pytest.approx(expected, rel=1e-12)


def test_a_token_beyond_the_clip_range_has_no_gradient_and_one_that_comes_back_has() -> None:
    grpo = ObjectiveSettings(loss="grpo")
    assert slope(1.5, 1.0, grpo) == 0.0
    assert slope(0.5, -1.0, grpo) == 0.0
    assert slope(0.5, 1.0, grpo) == pytest.approx(-0.5)
    assert slope(1.5, -1.0, grpo) == pytest.approx(1.5)


def test_dual_clip_bounds_what_a_bad_completion_with_a_high_ratio_can_do() -> None:
    settings = ObjectiveSettings(loss="grpo", dual_clip=3.0)
    # max(min(5 * -2, 1.2 * -2), 3 * -2) = max(-10, -6) = -6.
    assert term(5.0, -2.0, settings) == pytest.approx(6.0)
    assert slope(5.0, -2.0, settings) == 0.0
    assert term(2.0, -2.0, settings) == pytest.approx(4.0)
    assert term(5.0, 2.0, settings) == pytest.approx(-2.4), "good completions are not its business"


def test_cispo_weighs_log_policy_by_the_bounded_ratio_as_a_constant() -> None:
    settings = ObjectiveSettings(loss="cispo", clip_high=4.0)
    assert term(1.5, 2.0, settings, logprob=-0.7) == pytest.approx(-1.5 * 2.0 * -0.7)
    assert term(9.0, 2.0, settings, logprob=-0.7) == pytest.approx(-4.0 * 2.0 * -0.7)
    # Where the clipped surrogate stops, cispo goes on with the bounded weight.
    assert slope(9.0, 2.0, settings) == pytest.approx(-8.0)
    assert slope(0.1, -2.0, settings) == pytest.approx(0.2), "no bound from below by default"
    assert slope(0.1, -2.0, ObjectiveSettings(loss="cispo", clip_low=0.5)) == pytest.approx(1.0)


def test_sapo_gates_the_ratio_by_a_sigmoid_with_a_temperature_for_each_sign() -> None:
    settings = ObjectiveSettings(loss="sapo", sapo_temperature_positive=2.0, sapo_temperature_negative=4.0)
    # σ(2 * 0.5) * 4/2 * 3 and σ(4 * 0.5) * 4/4 * -3.
    assert term(1.5, 3.0, settings) == pytest.approx(-6.0 / (1 + math.exp(-1.0)))
    assert term(1.5, -3.0, settings) == pytest.approx(3.0 / (1 + math.exp(-2.0)))
    # d/dr = 4 σ(u)(1 - σ(u)), u = τ (r - 1); times r for the log.
    gate = 1 / (1 + math.exp(-1.0))
    assert slope(1.5, 3.0, settings) == pytest.approx(-3.0 * 4 * gate * (1 - gate) * 1.5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("advantage", [1.5, -1.5])
def test_at_a_ratio_of_one_every_loss_has_the_slope_of_reinforce(loss: str, advantage: float) -> None:
    settings = ObjectiveSettings(loss=loss)  # type: ignore[arg-type]
    assert slope(1.0, advantage, settings) == pytest.approx(-advantage, rel=1e-12)


def test_the_tokens_cut_are_those_without_gradient() -> None:
    grpo = ObjectiveSettings(loss="grpo", dual_clip=3.0)
    assert cut(1.5, 1.0, grpo) == (False, True)
    assert cut(0.5, -1.0, grpo) == (True, False)
    assert cut(0.5, 1.0, grpo) == (False, False)
    assert cut(1.5, -1.0, grpo) == (False, False)
    assert cut(3.5, -1.0, grpo) == (False, True)
    assert cut(1.5, 0.0, grpo) == (False, False)


@pytest.mark.parametrize("ratio", [0.1, 0.4, 1.0, 2.5, 1e6])
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 1.0])
def test_cispo_and_sapo_remove_no_gradient(ratio: float, advantage: float) -> None:
    assert cut(ratio, advantage, ObjectiveSettings(loss="cispo", clip_low=0.5, clip_high=2.0)) == (False, False)
    assert cut(ratio, advantage, ObjectiveSettings(loss="sapo")) == (False, False)


def test_cispo_bounds_weights_of_either_sign_on_both_sides_and_the_others_none() -> None:
    cispo = resolve(ObjectiveSettings(loss="cispo", clip_low=0.5, clip_high=2.0))
    bounded_BT = bounded_tokens(rows([2.5, 0.4, 1.0, 2.5]), rows([-1.0, 1.0, 1.0, 0.0]), cispo)
    assert bounded_BT is not None
    assert bounded_BT.tolist() == [[True, True, False, False]]
    for name in ("grpo", "sapo", "gspo"):
        assert bounded_tokens(rows([9.0]), rows([1.0]), resolve(ObjectiveSettings(loss=name))) is None


def test_the_sequence_ratio_is_the_geometric_mean_over_the_tokens_of_the_completion() -> None:
    log_ratio_BT = rows([1.5, 0.5], [2.0], fill=1.0).log()
    ratio_BT = policy_ratio(log_ratio_BT, prefix_mask([2, 1]), "sequence")
    half = math.sqrt(0.75)  # √(1.5 * 0.5)
    torch.testing.assert_close(ratio_BT, rows([half, half], [2.0, 1.0]))


def test_the_token_ratio_is_the_exponential() -> None:
    log_ratio_BT = rows([1.5, 0.5], [2.0], fill=1.0).log()
    torch.testing.assert_close(policy_ratio(log_ratio_BT, prefix_mask([2, 1]), "token"), rows([1.5, 0.5], [2.0, 1.0]))


@pytest.mark.parametrize("gap", [-1e4, 1e4])
def test_an_absurd_ratio_stays_finite_in_fp32(gap: float) -> None:
    ratio_BT: Tensor = policy_ratio(torch.tensor([[gap]]), torch.tensor([[True]]), "token")
    assert torch.isfinite(ratio_BT * 0.0).all()
