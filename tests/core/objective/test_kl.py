"""KL estimators: numbers, tensor and plain versions alike, and the gradients the docs promise."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.objective.kl import KlEstimator, kl_penalty, token_kl

ESTIMATORS: tuple[KlEstimator, ...] = ("k1", "k2", "k3")
logprobs = st.floats(-15, 0)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    # policy 1/2, reference 1/4: d = ln 2; exp(-d) = 1/2.
    [("k1", math.log(2)), ("k2", math.log(2) ** 2 / 2), ("k3", 0.5 - 1 + math.log(2))],
)
def test_each_estimator_of_a_token_twice_as_likely_as_under_the_reference(
    estimator: KlEstimator, expected: float
) -> None:
    policy, reference = math.log(0.5), math.log(0.25)
    assert token_kl(torch.tensor(policy).double(), torch.tensor(reference).double(), estimator).item() == pytest.approx(
        expected
    )
    assert kl_penalty([policy], [reference], estimator) == pytest.approx(expected)


def test_the_penalty_of_a_completion_is_the_sum_over_its_tokens() -> None:
    # d = ln 2 and -ln 2: k1 cancels, k3 is (1/2 - 1 + ln 2) + (2 - 1 - ln 2) = 1/2.
    policy, reference = [math.log(0.5), math.log(0.25)], [math.log(0.25), math.log(0.5)]
    assert kl_penalty(policy, reference, "k1") == pytest.approx(0.0)
    assert kl_penalty(policy, reference, "k3") == pytest.approx(0.5)


def test_a_penalty_needs_as_many_reference_as_policy_logprobs() -> None:
    with pytest.raises(ValueError, match="shorter"):
        kl_penalty([-1.0, -1.0], [-1.0], "k1")


@pytest.mark.parametrize("estimator", ESTIMATORS)
@settings(max_examples=40, deadline=None)
@given(pairs=st.lists(st.tuples(logprobs, logprobs), max_size=8))
def test_plain_and_tensor_versions_agree(estimator: KlEstimator, pairs: list[tuple[float, float]]) -> None:
    policy, reference = [p for p, _ in pairs], [r for _, r in pairs]
    tensors = (torch.tensor(values, dtype=torch.float64) for values in (policy, reference))
    assert kl_penalty(policy, reference, estimator) == pytest.approx(token_kl(*tensors, estimator).sum().item())


@settings(max_examples=40, deadline=None)
@given(policy=logprobs, reference=logprobs)
def test_k2_and_k3_are_never_negative_and_zero_where_both_agree(policy: float, reference: float) -> None:
    for estimator in ("k2", "k3"):
        assert kl_penalty([policy], [reference], estimator) >= 0  # type: ignore[arg-type]
        assert kl_penalty([policy], [policy], estimator) == 0  # type: ignore[arg-type]


def expected_gradient(estimator: KlEstimator) -> torch.Tensor:
    """Of the estimator in the loss, in expectation over tokens that the policy draws, w.r.t. the policy's logits."""
    logits, reference = torch.tensor([0.3, -0.2, 1.1]).double().requires_grad_(), REFERENCE.log()
    logp = logits.log_softmax(-1)
    # The loss differentiates the estimate, not the probability of having drawn the token.
    (logp.exp().detach() * token_kl(logp, reference, estimator)).sum().backward()
    assert logits.grad is not None
    return logits.grad


REFERENCE = torch.tensor([0.5, 0.2, 0.3]).double()


def gradient_of(divergence: str) -> torch.Tensor:
    logits = torch.tensor([0.3, -0.2, 1.1]).double().requires_grad_()
    p = logits.softmax(-1)
    if divergence == "policy || reference":
        (p * (p.log() - REFERENCE.log())).sum().backward()
    else:
        (REFERENCE * (REFERENCE.log() - p.log())).sum().backward()
    assert logits.grad is not None
    return logits.grad


def test_k1_in_the_loss_has_no_expected_gradient() -> None:
    torch.testing.assert_close(expected_gradient("k1"), torch.zeros(3).double(), atol=1e-15, rtol=0)


def test_k2_in_the_loss_follows_the_divergence_of_the_policy_from_the_reference() -> None:
    torch.testing.assert_close(expected_gradient("k2"), gradient_of("policy || reference"))


def test_k3_in_the_loss_follows_the_divergence_of_the_reference_from_the_policy() -> None:
    torch.testing.assert_close(expected_gradient("k3"), gradient_of("reference || policy"))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_absurd_gap_stays_finite_in_fp32_and_has_no_gradient(estimator: KlEstimator) -> None:
    policy = torch.tensor([-500.0], requires_grad=True)
    value = token_kl(policy, torch.tensor([0.0]), estimator)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert policy.grad is not None
    assert policy.grad.item() == 0.0
