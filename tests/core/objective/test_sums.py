"""Metrics of an update: worked by hand, and the same however the update is cut."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.objective.loss import compute_loss
from grpo_core.objective.sums import MetricSums, TokenMetrics, measure
from grpo_core.recipe.schema import ImportanceSettings, LossName, ObjectiveSettings
from tests.core.objective.batches import LOSSES, TWO_COMPLETIONS, prefix_mask, rows, two_completions


def tokens(reference: bool = True) -> TokenMetrics:
    """Three tokens in the loss and one of padding, whose values would spoil every metric."""
    mask_BT = prefix_mask([2, 1])
    return TokenMetrics(
        mask_BT=mask_BT,
        ratio_BT=rows([1.5, 0.5], [1.0]),
        cut_low_BT=torch.tensor([[False, True], [False, True]]),
        cut_high_BT=torch.tensor([[True, False], [True, True]]),
        bounded_ratio_BT=torch.tensor([[True, True], [False, True]]),
        entropies_BT=rows([1.0, 2.0], [6.0]),
        kl_BT=rows([0.1, 0.2], [0.6]) if reference else None,
        gaps_BT=rows([math.log(2), -math.log(4)], [0.0]),
        raw_weights_BT=rows([2.0, 0.25], [1.0]),
        bounded_BT=torch.tensor([[True, False], [False, True]]),
    )


def test_each_metric_by_hand() -> None:
    metrics = measure(torch.tensor(0.75), tokens()).finalise()
    assert metrics == pytest.approx(
        {
            "policy/loss": 0.75,
            "policy/ratio_mean": 1.0,
            "policy/ratio_max": 1.5,
            "policy/clip_low_share": 1 / 3,
            "policy/clip_high_share": 2 / 3,
            "policy/bounded_share": 2 / 3,
            "policy/entropy": 3.0,
            "policy/kl": 0.3,
            "sampler/gap_mean": math.log(2),  # (ln 2 + 2 ln 2 + 0) / 3
            "sampler/gap_max": math.log(4),
            # (2 - 1 - ln 2 + 1/4 - 1 + ln 4 + 0) / 3
            "sampler/kl": (0.25 + math.log(2)) / 3,
            "sampler/ratio_mean": 3.25 / 3,
            "sampler/ratio_min": 0.25,
            "sampler/ratio_max": 2.0,
            "sampler/ess": 3.25**2 / (3 * (4 + 1 / 16 + 1)),
            "sampler/dropped_share": 1 / 3,
        }
    )


def test_without_a_reference_model_there_is_no_kl() -> None:
    assert "policy/kl" not in measure(torch.tensor(0.0), tokens(reference=False)).finalise()


def test_an_update_without_a_token_in_the_loss_has_a_loss_and_nothing_else() -> None:
    assert MetricSums.none().finalise() == {"policy/loss": 0.0}


def test_adding_nothing_changes_nothing() -> None:
    sums = measure(torch.tensor(0.5), tokens())
    assert (MetricSums.none() + sums).finalise() == sums.finalise() == (sums + MetricSums.none()).finalise()


def test_tokens_weigh_the_same_whatever_micro_batch_they_were_in() -> None:
    whole = tokens()
    first = measure(torch.tensor(0.25), TokenMetrics(**{name: value[:1] for name, value in fields(whole).items()}))
    second = measure(torch.tensor(0.5), TokenMetrics(**{name: value[1:] for name, value in fields(whole).items()}))
    assert (first + second).finalise() == pytest.approx(measure(torch.tensor(0.75), whole).finalise())


def fields(metrics: TokenMetrics) -> dict[str, torch.Tensor]:
    return {name: getattr(metrics, name) for name in TokenMetrics.__dataclass_fields__}


def test_the_loss_of_the_metrics_is_the_one_whose_gradient_is_taken() -> None:
    result = compute_loss(two_completions(), TWO_COMPLETIONS, ObjectiveSettings(loss="grpo"))
    assert result.sums.finalise()["policy/loss"] == pytest.approx(result.loss.item())


def test_metrics_of_a_loss_count_what_it_cut() -> None:
    metrics = compute_loss(two_completions(), TWO_COMPLETIONS, ObjectiveSettings(loss="grpo")).sums.finalise()
    assert metrics["policy/clip_high_share"] == pytest.approx(1 / 3), "the first token: ratio 1.5, good"
    assert metrics["policy/clip_low_share"] == 0.0
    assert metrics["policy/ratio_mean"] == pytest.approx(3.5 / 3)
    assert metrics["sampler/gap_max"] == 0.0
    assert metrics["sampler/ess"] == pytest.approx(1.0)


def test_on_policy_no_token_is_cut_and_the_ratio_is_exactly_one() -> None:
    metrics = compute_loss(two_completions(on_policy=True), TWO_COMPLETIONS, ObjectiveSettings()).sums.finalise()
    assert metrics["policy/ratio_mean"] == metrics["policy/ratio_max"] == 1.0
    assert metrics["policy/clip_low_share"] == metrics["policy/clip_high_share"] == 0.0


def test_a_token_that_the_entropy_mask_left_out_is_not_one_that_the_clip_cuts() -> None:
    inputs = replace(two_completions(), policy_mask_BT=torch.tensor([[False, True], [True, True]]))
    metrics = compute_loss(inputs, TWO_COMPLETIONS, ObjectiveSettings(loss="grpo")).sums.finalise()
    assert metrics["policy/clip_high_share"] == 0.0, "the only one that the clip cuts is the first token"


def test_a_token_that_the_importance_mask_left_out_is_not_one_that_the_clip_cuts() -> None:
    inputs = two_completions()
    far_BT = inputs.sampling_logprobs_BT - rows([3.0, 0.0], [0.0])  # a weight of e³ for the first token
    settings = ObjectiveSettings(loss="grpo", importance=ImportanceSettings(correction="token_mask"))
    metrics = compute_loss(replace(inputs, sampling_logprobs_BT=far_BT), TWO_COMPLETIONS, settings).sums.finalise()
    assert metrics["policy/clip_high_share"] == 0.0
    assert metrics["sampler/dropped_share"] == pytest.approx(1 / 3)


@given(
    loss=st.sampled_from(LOSSES),
    correction=st.sampled_from(["token_truncate", "token_mask", "sequence_mask", "off"]),
    ratios=st.lists(st.sampled_from([0.3, 0.9, 1.0, 1.1, 3.0, 12.0]), min_size=3, max_size=3),
    gaps=st.lists(st.sampled_from([-2.0, 0.0, 2.0]), min_size=3, max_size=3),
    kept=st.lists(st.booleans(), min_size=3, max_size=3),
    advantages=st.tuples(*[st.sampled_from([-1.0, 0.0, 2.0])] * 2),
    dual_clip=st.sampled_from([None, 2.0]),
)
def test_the_clip_shares_count_the_tokens_whose_gradient_comes_back_without_the_clip(
    loss: LossName,
    correction: str,
    ratios: list[float],
    gaps: list[float],
    kept: list[bool],
    advantages: tuple[float, float],
    dual_clip: float | None,
) -> None:
    logprobs_BT = rows([0.5, 0.25], [0.1]).log()
    old_BT = logprobs_BT - rows(ratios[:2], ratios[2:]).log()
    inputs = replace(
        two_completions(advantages),
        old_logprobs_BT=old_BT,
        sampling_logprobs_BT=old_BT - rows(gaps[:2], gaps[2:]),
        policy_mask_BT=torch.tensor([kept[:2], [kept[2], True]]),
    )
    importance = ImportanceSettings.model_validate({"correction": correction})
    bound = ObjectiveSettings(loss=loss, dual_clip=dual_clip if loss == "grpo" else None, importance=importance)
    free = bound.model_copy(update={"clip_low": 1.0, "clip_high": 1e9, "dual_clip": None})

    def has_gradient(settings: ObjectiveSettings) -> torch.Tensor:
        (gradient_BT,) = torch.autograd.grad(
            compute_loss(inputs, TWO_COMPLETIONS, settings).loss, inputs.logprobs_BT, retain_graph=True
        )
        return (gradient_BT != 0) & inputs.mask_BT

    metrics = compute_loss(inputs, TWO_COMPLETIONS, bound).sums.finalise()
    removed = has_gradient(free) & ~has_gradient(bound)
    counted = metrics["policy/clip_low_share"] + metrics["policy/clip_high_share"]
    if loss != "gspo":  # there the ratio, and so the gradient, of a token is that of its whole completion
        assert counted == pytest.approx(removed.sum().item() / 3)
    assert ("policy/bounded_share" in metrics) == (loss == "cispo")
