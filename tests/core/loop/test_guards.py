"""When a run must not go on."""

import pytest

from grpo_core.errors import Collapse, RolloutError
from grpo_core.loop.guards import ZeroRewardGuard, check_finite, check_gap_of, check_sampler_gap
from grpo_core.types import TokenStats, TrainBatch, TrainGroup, TrainMember
from tests.core.loop.make import scored_group, step_report


def batch() -> TrainBatch:
    member = TrainMember(token_ids=(1, 2), advantage=0.0, sampling_logprobs=(-1.0, -2.0))
    return TrainBatch(
        groups=(TrainGroup(prompt_ids=(5,), members=(member,)),),
        step=1,
        temperature=1.0,
        logprob_space="tempered",
        sequences=1,
        tokens=2,
        max_completion_tokens=8,
    )


def stats(*logprobs: float) -> TokenStats:
    return TokenStats(logprobs=((logprobs,),), space_logprobs=None, entropies=(((0.0,) * len(logprobs),),))


def test_a_small_gap_between_engine_and_trainer_passes() -> None:
    check_sampler_gap(batch(), stats(-1.01, -2.02), 0.3)


def test_shifted_log_probabilities_stop_the_run_with_the_numbers() -> None:
    with pytest.raises(
        RolloutError, match=r"1 nats a token on average, 1 at most, over 2 tokens where 0\.3 are allowed"
    ):
        check_sampler_gap(batch(), stats(-2.0, -1.0), 0.3)


def test_a_gap_that_is_not_a_number_stops_the_run() -> None:
    with pytest.raises(RolloutError, match="nan"):
        check_sampler_gap(batch(), stats(float("nan"), -2.0), 0.3)


def test_the_gap_is_measured_in_the_space_the_engine_declares() -> None:
    other = TokenStats(logprobs=(((-5.0, -5.0),),), space_logprobs=(((-1.0, -2.0),),), entropies=(((0.0, 0.0),),))
    check_sampler_gap(batch(), other, 0.3)


def test_an_engine_that_drifts_in_the_middle_of_a_run_is_found_by_the_metrics_of_the_step() -> None:
    within = step_report(**{"sampler/gap_mean": 2e-6, "sampler/gap_max": 1e-5})
    check_gap_of(within, 1e-3)
    check_gap_of(step_report(), 1e-3)  # nobody had an advantage, so nothing was forwarded
    check_gap_of(step_report(**{"sampler/gap_mean": 0.5, "sampler/gap_max": 1.0, "sampler/staleness_max": 1.0}), 1e-3)
    with pytest.raises(RolloutError, match=r"0\.0123 nats a token on average, 0\.5 at most, where 0\.001 are allowed"):
        check_gap_of(step_report(**{"sampler/gap_mean": 0.0123, "sampler/gap_max": 0.5}), 1e-3)


def test_a_metric_that_is_not_finite_is_named() -> None:
    with pytest.raises(Collapse, match="trainer/grad_norm = nan"):
        check_finite(step_report(**{"trainer/grad_norm": float("nan"), "policy/kl": None}))


def test_zero_reward_everywhere_stops_after_the_patience_and_not_before() -> None:
    guard = ZeroRewardGuard(3)
    guard.watch([scored_group([0.0, 0.0])], 1)
    guard.watch([scored_group([0.0, None])], 2)
    with pytest.raises(Collapse, match="the last 3 steps has a total of 0"):
        guard.watch([scored_group([0.0, 0.0])], 3)


def test_one_reward_starts_the_count_anew() -> None:
    guard = ZeroRewardGuard(2)
    guard.watch([scored_group([0.0])], 1)
    guard.watch([scored_group([0.0, 0.1])], 2)
    guard.watch([scored_group([0.0])], 3)
    assert guard.streak == 1


def test_patience_zero_never_stops() -> None:
    guard = ZeroRewardGuard(0)
    for step in range(100):
        guard.watch([scored_group([0.0])], step)
    assert guard.streak == 100
