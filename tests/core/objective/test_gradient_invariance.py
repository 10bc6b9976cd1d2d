"""However an update is cut into micro-batches, padded and filled up, its loss and its gradient are the same.

A toy policy with shared parameters stands for the model: every token's log-probability and entropy come from one vector
W, so that the gradients of all micro-batches meet in it. Shapes: B completions, T tokens, D parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import softplus

from grpo_core.objective.loss import Denominators, TokenInputs, compute_loss
from grpo_core.objective.sums import MetricSums
from grpo_core.recipe.schema import ImportanceSettings, LossName, ObjectiveSettings
from tests.core.objective.batches import LOSSES, prefix_mask

D = 3
every_loss = pytest.mark.parametrize("name", LOSSES)


@dataclass(frozen=True)
class Update:
    """The completions of an optimiser update, without padding."""

    lengths: list[int]
    features: list[Tensor]
    """[T, D] each."""
    noise: list[Tensor]
    """[T, 4] each: what old, reference and sampler differ by, and whether the token is in the policy term."""
    advantages: list[float]
    in_loss: list[bool]
    first_update: bool
    """There are no old log-probabilities."""

    @property
    def denominators(self) -> Denominators:
        counted = [length for length, flag in zip(self.lengths, self.in_loss, strict=True) if flag]
        return Denominators(sequences=len(counted), tokens=sum(counted), max_completion_tokens=8)

    def inputs(self, w_D: Tensor, chosen: list[int], padding: int) -> TokenInputs:
        """A micro-batch of some completions, padded with garbage beyond the longest."""
        width = max([self.lengths[i] for i in chosen], default=0) + padding
        features_BTD = self._padded([self.features[i] for i in chosen], width).to(w_D.dtype)
        noise_BT4 = self._padded([self.noise[i] for i in chosen], width).to(w_D.dtype)
        score_BT = features_BTD @ w_D
        logprobs_BT = -softplus(score_BT)
        old_BT = -softplus(features_BTD.sum(-1) / 4) + noise_BT4[..., 0]
        mask_BT = prefix_mask([self.lengths[i] if self.in_loss[i] else 0 for i in chosen], width)
        return TokenInputs(
            logprobs_BT=logprobs_BT,
            old_logprobs_BT=None if self.first_update else old_BT,
            reference_logprobs_BT=old_BT + noise_BT4[..., 1],
            sampling_logprobs_BT=old_BT + noise_BT4[..., 2],
            correction_logprobs_BT=old_BT,
            entropies_BT=softplus(-score_BT) * score_BT.sigmoid(),
            advantages_B=torch.tensor([self.advantages[i] for i in chosen], dtype=w_D.dtype),
            mask_BT=mask_BT,
            policy_mask_BT=noise_BT4[..., 3] > -0.1,
        )

    @staticmethod
    def _padded(values: list[Tensor], width: int) -> Tensor:
        rows = [torch.cat([v, torch.full((width - len(v), v.shape[1]), 7.0, dtype=v.dtype)]) for v in values]
        return torch.stack(rows)


@st.composite
def updates(draw: st.DrawFn) -> Update:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))

    def normal(length: int, size: int, scale: float) -> Tensor:
        return scale * torch.randn(length, size, generator=generator, dtype=torch.float64)

    return Update(
        lengths=lengths,
        features=[normal(n, D, 1.0) for n in lengths],
        noise=[normal(n, 4, 0.3) for n in lengths],
        advantages=[draw(st.sampled_from([-1.5, -0.5, 0.0, 0.5, 2.0])) for _ in lengths],
        in_loss=[draw(st.booleans()) for _ in lengths],
        first_update=draw(st.booleans()),
    )


@st.composite
def objectives(draw: st.DrawFn, name: LossName) -> ObjectiveSettings:
    correction = draw(st.sampled_from(["off", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]))
    return ObjectiveSettings(
        loss=name,
        dual_clip=draw(st.sampled_from([None, 1.5])),
        beta=draw(st.sampled_from([0.0, 0.3])),
        kl_estimator=draw(st.sampled_from(["k2", "k3"])),
        entropy_bonus=draw(st.sampled_from([0.0, 0.2])),
        importance=ImportanceSettings(correction=correction, cap=1.3),
    )


@st.composite
def partitions(draw: st.DrawFn, count: int) -> list[list[int]]:
    """The completions in any order, cut anywhere."""
    order = draw(st.permutations(range(count)))
    cuts = sorted(draw(st.sets(st.integers(1, count), max_size=count)) | {0, count})
    return [list(order[a:b]) for a, b in pairwise(cuts)]


def accumulate(
    update: Update, parts: list[list[int]], objective: ObjectiveSettings, padding: int, dtype: torch.dtype
) -> tuple[float, Tensor, dict[str, float]]:
    """What a trainer does with an update: one forward and backward for each micro-batch."""
    w_D = torch.linspace(-0.5, 0.7, D, dtype=dtype).requires_grad_()
    loss, sums = 0.0, MetricSums.none()
    for part in parts:
        result = compute_loss(update.inputs(w_D, part, padding), update.denominators, objective)
        torch.autograd.backward(result.loss)
        loss, sums = loss + result.loss.item(), sums + result.sums
    assert w_D.grad is not None
    return loss, w_D.grad, sums.finalise()


@every_loss
@settings(max_examples=25, deadline=None)
@given(data=st.data(), update=updates(), padding=st.integers(0, 2))
def test_cutting_an_update_in_any_way_leaves_loss_gradient_and_metrics(
    name: LossName, data: st.DataObject, update: Update, padding: int
) -> None:
    objective = data.draw(objectives(name))
    parts = data.draw(partitions(len(update.lengths)))
    whole = accumulate(update, [list(range(len(update.lengths)))], objective, 0, torch.float64)
    cut = accumulate(update, parts, objective, padding, torch.float64)
    assert cut[0] == pytest.approx(whole[0], rel=1e-12, abs=1e-12)
    torch.testing.assert_close(cut[1], whole[1], rtol=1e-12, atol=1e-12)
    assert cut[2] == pytest.approx(whole[2], rel=1e-12, abs=1e-12)


@every_loss
@settings(max_examples=10, deadline=None)
@given(data=st.data(), update=updates())
def test_in_fp32_it_holds_to_rounding(name: LossName, data: st.DataObject, update: Update) -> None:
    objective = data.draw(objectives(name))
    parts = data.draw(partitions(len(update.lengths)))
    whole = accumulate(update, [list(range(len(update.lengths)))], objective, 0, torch.float32)
    cut = accumulate(update, parts, objective, 1, torch.float32)
    torch.testing.assert_close(cut[1], whole[1], rtol=1e-5, atol=1e-6)


@every_loss
@settings(max_examples=10, deadline=None)
@given(update=updates())
def test_skipping_completions_without_signal_leaves_the_gradient(name: LossName, update: Update) -> None:
    objective = ObjectiveSettings(loss=name)
    everyone = list(range(len(update.lengths)))
    with_signal = [i for i in everyone if update.advantages[i] != 0.0]
    _, whole, _ = accumulate(update, [everyone], objective, 0, torch.float64)
    if with_signal:
        _, skipped, _ = accumulate(update, [with_signal], objective, 0, torch.float64)
        torch.testing.assert_close(skipped, whole, rtol=1e-12, atol=1e-12)
    else:
        assert (whole == 0).all()


@every_loss
@settings(max_examples=10, deadline=None)
@given(update=updates())
def test_a_completion_without_advantage_has_exactly_no_gradient(name: LossName, update: Update) -> None:
    w_D = torch.linspace(-0.5, 0.7, D, dtype=torch.float64).requires_grad_()
    inputs = update.inputs(w_D, list(range(len(update.lengths))), 0)
    loss = compute_loss(inputs, update.denominators, ObjectiveSettings(loss=name)).loss
    (gradient_BT,) = torch.autograd.grad(loss, inputs.logprobs_BT)
    silent_B = torch.tensor([a == 0.0 for a in update.advantages])
    assert (gradient_BT[silent_B] == 0).all()


@every_loss
@settings(max_examples=10, deadline=None)
@given(update=updates(), correction=st.sampled_from(["off", "token_truncate", "sequence_truncate"]))
def test_one_on_policy_update_has_the_gradient_of_reinforce(name: LossName, update: Update, correction: str) -> None:
    """With the weights w of the sampler's correction: the sum of -w A log π over the denominator."""
    w_D = torch.linspace(-0.5, 0.7, D, dtype=torch.float64).requires_grad_()
    objective = ObjectiveSettings(loss=name, importance=ImportanceSettings(correction=correction, cap=1.3))  # type: ignore[arg-type]
    on_policy = Update(**{**vars(update), "first_update": True})
    inputs = on_policy.inputs(w_D, list(range(len(update.lengths))), 0)
    inputs = TokenInputs(**{**fields(inputs), "correction_logprobs_BT": None, "policy_mask_BT": None})
    loss = compute_loss(inputs, update.denominators, objective).loss
    (gradient_D,) = torch.autograd.grad(loss, w_D, retain_graph=True)
    (expected_D,) = torch.autograd.grad(reinforce(name, inputs, update.denominators, correction), w_D)
    torch.testing.assert_close(gradient_D, expected_D, rtol=1e-10, atol=1e-12)


def fields(inputs: TokenInputs) -> dict[str, Tensor | None]:
    return {name: getattr(inputs, name) for name in TokenInputs.__dataclass_fields__}


def reinforce(name: LossName, inputs: TokenInputs, update: Denominators, correction: str) -> Tensor:
    """Row by row, in plain words."""
    total = inputs.logprobs_BT.sum() * 0
    for logprobs_T, sampler_T, mask_T, advantage in zip(
        inputs.logprobs_BT, inputs.sampling_logprobs_BT, inputs.mask_BT, inputs.advantages_B, strict=True
    ):
        if not mask_T.any():
            continue
        logp, gap = logprobs_T[mask_T], (logprobs_T - sampler_T)[mask_T].detach()
        weight = {"off": torch.ones_like(gap), "token_truncate": gap.exp().clamp(max=1.3)}.get(
            correction, gap.mean().exp().clamp(max=1.3)
        )
        # One ratio for the whole completion spreads the gradient evenly, and with it the weights of the tokens.
        weight = weight.mean() if name == "gspo" else weight
        denominator = {"dr_grpo": 8 * update.sequences, "grpo": len(logp) * update.sequences}
        denominator |= {"sapo": denominator["grpo"], "gspo": denominator["grpo"]}
        total = total - (weight * advantage * logp).sum() / denominator.get(name, update.tokens)
    return total
