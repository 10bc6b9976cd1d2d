"""The whole loss of every preset by hand, each further term by hand, and what must not leak into it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from grpo_core.errors import TrainerError
from grpo_core.objective.loss import Denominators, TokenInputs, compute_loss
from grpo_core.recipe.schema import ImportanceSettings, LossName, ObjectiveSettings
from grpo_core.types import TrainBatch
from tests.core.objective.batches import LOSSES, TWO_COMPLETIONS, prefix_mask, rows, two_completions

LN2, LN10 = math.log(2), math.log(10)
GATE = 1 / (1 + math.exp(-1.05 * 0.5))
ROOT = math.sqrt(1.5 * 0.5)


def loss_of(inputs: TokenInputs, settings: ObjectiveSettings, update: Denominators = TWO_COMPLETIONS) -> float:
    return compute_loss(inputs, update, settings).loss.item()


def gradient_of(inputs: TokenInputs, settings: ObjectiveSettings, update: Denominators = TWO_COMPLETIONS) -> Tensor:
    (gradient_BT,) = torch.autograd.grad(compute_loss(inputs, update, settings).loss, inputs.logprobs_BT)
    return gradient_BT


# Completion 1 (A = 1): ratios 3/2 and 1/2. Completion 2 (A = -2): ratio 3/2. Log-probabilities ln 1/2, ln 1/4, ln 1/10.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Clip 0.8 to 1.2: tokens -1.2, -0.5 and 3. Mean of each, then over both: ((-1.7 / 2) + 3) / 2.
        ("grpo", 1.075),
        # The same tokens over 2 completions of 4 tokens at most.
        ("dr_grpo", 1.3 / 8),
        # Clip up to 1.28: -1.28 - 0.5 + 3 over 3 tokens.
        ("dapo", 1.22 / 3),
        ("bnpo", 1.22 / 3),
        # -(3/2 ln 1/2 + 1/2 ln 1/4 - 2 * 3/2 ln 1/10) over 3 tokens.
        ("cispo", (2.5 * LN2 - 3 * LN10) / 3),
        # 4 σ(1/2) + 4 σ(-1/2) = 4, mean -2; 2 * 4/1.05 σ(1.05/2).
        ("sapo", (-2 + 2 * 4 / 1.05 * GATE) / 2),
        # s = √(3/4): min(s, 0.9997) = s, and for A = -2 min(-3, -2 * 1.0004) = -3.
        ("gspo", (-ROOT + 3) / 2),
    ],
)
def test_every_preset_by_hand(name: LossName, expected: float) -> None:
    assert loss_of(two_completions(), ObjectiveSettings(loss=name)) == pytest.approx(expected, rel=1e-12)


def test_gspo_by_hand_where_its_narrow_clip_binds() -> None:
    # A = -1: min(-s, -0.9997), A = 2: min(3, 2 * 1.0004); neither has a gradient.
    inputs = two_completions(advantages=(-1.0, 2.0))
    assert loss_of(inputs, ObjectiveSettings(loss="gspo")) == pytest.approx((0.9997 - 2.0008) / 2)
    assert gradient_of(inputs, ObjectiveSettings(loss="gspo"))[prefix_mask([2, 1])].tolist() == [0.0, 0.0, 0.0]


def test_the_gradient_of_dapo_by_hand() -> None:
    # -r A / 3 where the clip does not bind: 0 (r = 1.5 > 1.28), -0.5 / 3, 2 * 1.5 / 3.
    gradient_BT = gradient_of(two_completions(), ObjectiveSettings(loss="dapo"))
    torch.testing.assert_close(gradient_BT, rows([0.0, -0.5 / 3], [1.0, 0.0]))


def test_the_gradient_of_gspo_by_hand() -> None:
    # s = exp(mean of log r): d(-s A / N) / d log π = -s A / (2 N) for each of two tokens.
    gradient_BT = gradient_of(two_completions(), ObjectiveSettings(loss="gspo"))
    torch.testing.assert_close(gradient_BT, rows([-ROOT / 4, -ROOT / 4], [1.5, 0.0]))


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("grpo", ([1 / 4, 1 / 4], [1 / 2, 0.0])),
        ("dr_grpo", ([1 / 8, 1 / 8], [1 / 8, 0.0])),
        ("dapo", ([1 / 3, 1 / 3], [1 / 3, 0.0])),
        ("bnpo", ([1 / 3, 1 / 3], [1 / 3, 0.0])),
        ("cispo", ([1 / 3, 1 / 3], [1 / 3, 0.0])),
        ("sapo", ([1 / 4, 1 / 4], [1 / 2, 0.0])),
        ("gspo", ([1 / 4, 1 / 4], [1 / 2, 0.0])),
    ],
)
def test_on_policy_the_gradient_is_that_of_reinforce(name: LossName, shares: tuple[list[float], list[float]]) -> None:
    gradient_BT = gradient_of(two_completions(on_policy=True), ObjectiveSettings(loss=name))
    torch.testing.assert_close(gradient_BT, -torch.tensor([[1.0], [-2.0]]) * rows(*shares))


def test_dual_clip_enters_the_loss() -> None:
    # The bad completion's ratio 1.5 counts 1.25: ((-1.7 / 2) + 2.5) / 2.
    settings = ObjectiveSettings(loss="grpo", dual_clip=1.25)
    assert loss_of(two_completions(), settings) == pytest.approx(0.825)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    # Under the reference every token is half as likely: d = ln 2 for each of 3 tokens.
    [("k2", LN2**2 / 2), ("k3", LN2 - 0.5)],
)
@pytest.mark.parametrize(
    ("name", "weight"),
    [("grpo", 1.0), ("dapo", 1.0), ("dr_grpo", 3 / 8)],
)
def test_kl_is_added_over_the_denominator_of_the_policy_term(
    estimator: str, expected: float, name: LossName, weight: float
) -> None:
    inputs = two_completions()
    inputs = replace(inputs, reference_logprobs_BT=inputs.logprobs_BT.detach() - LN2)
    settings = ObjectiveSettings(loss=name, beta=0.5, kl_estimator=estimator)  # type: ignore[arg-type]
    without = loss_of(inputs, ObjectiveSettings(loss=name))
    assert loss_of(inputs, settings) - without == pytest.approx(0.5 * expected * weight)


def test_kl_in_the_reward_leaves_the_loss_alone_and_is_measured() -> None:
    inputs = two_completions()
    inputs = replace(inputs, reference_logprobs_BT=inputs.logprobs_BT.detach() - LN2)
    result = compute_loss(inputs, TWO_COMPLETIONS, ObjectiveSettings(loss="grpo", beta=0.5, kl_in="reward"))
    assert result.loss.item() == pytest.approx(1.075)
    assert result.sums.finalise()["policy/kl"] == pytest.approx(LN2 - 0.5)


def test_an_entropy_bonus_takes_the_mean_entropy_off_the_loss() -> None:
    inputs = two_completions()
    entropies_BT = rows([1.0, 2.0], [6.0]).requires_grad_()
    settings = ObjectiveSettings(loss="dapo", entropy_bonus=0.1)
    result = compute_loss(replace(inputs, entropies_BT=entropies_BT), TWO_COMPLETIONS, settings)
    assert result.loss.item() == pytest.approx(1.22 / 3 - 0.1 * 3)
    (gradient_BT,) = torch.autograd.grad(result.loss, entropies_BT)
    torch.testing.assert_close(gradient_BT, rows([-0.1 / 3, -0.1 / 3], [-0.1 / 3, 0.0]))


def test_importance_weights_multiply_the_policy_term_and_not_kl() -> None:
    # The engine thought every token exp(0.2) times likelier: each weight is exp(-0.2), below the cap.
    inputs = two_completions()
    assert inputs.old_logprobs_BT is not None
    inputs = replace(
        inputs,
        sampling_logprobs_BT=inputs.old_logprobs_BT + 0.2,
        reference_logprobs_BT=inputs.logprobs_BT.detach() - LN2,
    )
    settings = ObjectiveSettings(loss="grpo", beta=0.5)
    assert loss_of(inputs, settings) == pytest.approx(math.exp(-0.2) * 1.075 + 0.5 * (LN2 - 0.5))


def test_the_weight_compares_the_sampler_with_the_trainer_in_the_samplers_space() -> None:
    inputs = two_completions()
    raw_BT = inputs.logprobs_BT.detach() + 3.0
    inputs = replace(inputs, sampling_logprobs_BT=raw_BT - LN2, correction_logprobs_BT=raw_BT)
    settings = ObjectiveSettings(loss="grpo", importance=ImportanceSettings(cap=5))
    assert loss_of(inputs, settings) == pytest.approx(2 * 1.075)


def test_a_policy_mask_leaves_tokens_out_of_the_policy_term_only() -> None:
    inputs = two_completions()
    inputs = replace(
        inputs,
        reference_logprobs_BT=inputs.logprobs_BT.detach() - LN2,
        policy_mask_BT=torch.tensor([[False, True], [True, True]]),
    )
    # Without the first token -0.5 + 3, still over 3 tokens, and the KL of all three.
    settings = ObjectiveSettings(loss="dapo", beta=0.5)
    assert loss_of(inputs, settings) == pytest.approx(2.5 / 3 + 0.5 * (LN2 - 0.5))


@pytest.mark.parametrize("name", LOSSES)
def test_padding_and_rows_out_of_the_loss_have_no_gradient_whatever_they_hold(name: LossName) -> None:
    inputs = two_completions()
    nan_BT = torch.full((1, 2), torch.nan, dtype=torch.float64)

    def with_a_third_row(values_BT: Tensor) -> Tensor:
        return torch.cat([values_BT.detach(), nan_BT])

    assert inputs.old_logprobs_BT is not None
    logprobs_BT = with_a_third_row(inputs.logprobs_BT).requires_grad_()
    entropies_BT = with_a_third_row(inputs.entropies_BT).requires_grad_()
    spoiled = TokenInputs(
        logprobs_BT=logprobs_BT,
        old_logprobs_BT=with_a_third_row(inputs.old_logprobs_BT),
        reference_logprobs_BT=with_a_third_row(inputs.logprobs_BT - LN2),
        sampling_logprobs_BT=with_a_third_row(inputs.sampling_logprobs_BT),
        entropies_BT=entropies_BT,
        advantages_B=torch.tensor([1.0, -2.0, math.nan], dtype=torch.float64),
        mask_BT=torch.cat([inputs.mask_BT, torch.zeros(1, 2, dtype=torch.bool)]),
    )
    settings = ObjectiveSettings(loss=name, beta=0.1, entropy_bonus=0.1)
    result = compute_loss(spoiled, TWO_COMPLETIONS, settings)
    gradients = torch.autograd.grad(result.loss, [logprobs_BT, entropies_BT])
    for gradient_BT in gradients:
        assert torch.isfinite(gradient_BT).all()
        assert (gradient_BT[~spoiled.mask_BT] == 0).all()
    clean = replace(inputs, reference_logprobs_BT=inputs.logprobs_BT.detach() - LN2)
    clean = replace(clean, entropies_BT=clean.entropies_BT.requires_grad_())
    assert result.loss.item() == pytest.approx(loss_of(clean, settings))
    assert all(math.isfinite(value) for value in result.sums.finalise().values())


@pytest.mark.parametrize("name", LOSSES)
def test_a_dummy_micro_batch_has_a_loss_of_zero_that_can_be_differentiated(name: LossName) -> None:
    inputs = replace(two_completions(), mask_BT=torch.zeros(2, 2, dtype=torch.bool))
    result = compute_loss(
        inputs, Denominators(sequences=0, tokens=0, max_completion_tokens=4), ObjectiveSettings(loss=name)
    )
    assert result.loss.item() == 0.0
    (gradient_BT,) = torch.autograd.grad(result.loss, inputs.logprobs_BT)
    assert (gradient_BT == 0).all()
    assert result.sums.finalise() == {"policy/loss": 0.0}


def test_beta_without_reference_logprobs_is_an_error_that_says_where_they_come_from() -> None:
    with pytest.raises(TrainerError, match=r"beta is 0.5, and the batch has no reference") as caught:
        loss_of(two_completions(), ObjectiveSettings(beta=0.5))
    assert "before the first update" in str(caught.value)


def test_an_entropy_bonus_on_entropies_without_gradient_is_an_error_not_a_no_op() -> None:
    with pytest.raises(TrainerError, match="carry no gradient") as caught:
        loss_of(two_completions(), ObjectiveSettings(entropy_bonus=0.1))
    assert "with_entropy_grad=True" in str(caught.value)


def test_denominators_are_those_of_the_batch() -> None:
    batch = TrainBatch(
        groups=(), step=1, temperature=1.0, logprob_space="tempered", sequences=5, tokens=70, max_completion_tokens=32
    )
    assert Denominators.of(batch) == Denominators(sequences=5, tokens=70, max_completion_tokens=32)
