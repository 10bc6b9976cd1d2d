from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.rollout.random_streams import stream_keys, uniforms
from grpo_core.rollout.sampling import draw
from grpo_core.types import SamplingParams

DRAWS = 20_000


def params(**values: Any) -> SamplingParams:
    return SamplingParams(max_tokens=1, **values)


def logits_of(*probabilities: float) -> torch.Tensor:
    return torch.tensor(probabilities).log()


def frequencies(logits_V: torch.Tensor, seen: list[int] | None = None, **values: Any) -> list[float]:
    """How often each token is drawn, out of 20,000."""
    numbers = torch.from_numpy(uniforms(stream_keys((0, index) for index in range(DRAWS)), 0))
    seen_BV = None
    if seen is not None:
        seen_BV = torch.zeros(DRAWS, len(logits_V), dtype=torch.bool)
        seen_BV[:, seen] = True
    drawn = draw(logits_V.expand(DRAWS, -1), params(**values), numbers, seen_BV)
    return (torch.bincount(drawn.tokens_B, minlength=len(logits_V)) / DRAWS).tolist()


def assert_distributed(found: list[float], expected: list[float]) -> None:
    """Chi-square over the tokens that can be drawn; the others never are."""
    possible = [i for i, p in enumerate(expected) if p > 0]
    assert [found[i] for i in range(len(expected)) if i not in possible] == [0.0] * (len(expected) - len(possible))
    statistic = sum(DRAWS * (found[i] - expected[i]) ** 2 / expected[i] for i in possible)
    degrees = len(possible) - 1
    assert statistic <= degrees + 4 * math.sqrt(2 * degrees)  # four standard deviations above the mean


def test_tokens_are_as_frequent_as_the_softmax_says() -> None:
    assert_distributed(frequencies(logits_of(0.5, 0.25, 0.15, 0.07, 0.03)), [0.5, 0.25, 0.15, 0.07, 0.03])


def test_tokens_of_a_vocabulary_of_several_blocks_are_as_frequent_as_the_softmax_says() -> None:
    logits = torch.linspace(-1.0, 1.0, 300)[torch.randperm(300, generator=torch.Generator().manual_seed(0))]
    assert_distributed(frequencies(logits), logits.double().softmax(-1).tolist())


def test_a_temperature_of_a_half_squares_the_odds() -> None:
    # 0.6^2 : 0.3^2 : 0.1^2 = 36 : 9 : 1
    assert_distributed(frequencies(logits_of(0.6, 0.3, 0.1), temperature=0.5), [36 / 46, 9 / 46, 1 / 46])


def test_temperature_0_draws_the_likeliest_token_and_the_first_of_equals() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0], [1.0, 0.0, 0.999999]])
    drawn = draw(logits, params(temperature=0.0), torch.full((2,), 0.999, dtype=torch.float64))
    assert drawn.tokens_B.tolist() == [1, 0]


def test_top_k_leaves_the_k_likeliest() -> None:
    assert_distributed(frequencies(logits_of(0.1, 0.4, 0.2, 0.3), top_k=2), [0, 4 / 7, 0, 3 / 7])


def test_a_top_k_beyond_the_vocabulary_leaves_all() -> None:
    assert_distributed(frequencies(logits_of(0.6, 0.4), top_k=50), [0.6, 0.4])


def test_top_p_leaves_the_smallest_set_that_reaches_it() -> None:
    # 0.4 + 0.3 = 0.7 does not reach 0.75, with 0.2 it does.
    assert_distributed(frequencies(logits_of(0.1, 0.4, 0.2, 0.3), top_p=0.75), [0, 4 / 9, 2 / 9, 3 / 9])


def test_a_tiny_top_p_leaves_the_likeliest() -> None:
    assert frequencies(logits_of(0.3, 0.4, 0.3), top_p=1e-9) == [0, 1, 0]


def test_min_p_leaves_tokens_at_least_that_fraction_as_likely_as_the_likeliest() -> None:
    # 0.3 * 0.5 = 0.15: 0.2 stays, 0.1 goes.
    assert_distributed(frequencies(logits_of(0.5, 0.2, 0.1, 0.2), min_p=0.3), [5 / 9, 2 / 9, 0, 2 / 9])


def test_filters_act_in_the_order_top_k_top_p_min_p() -> None:
    # top_k 3 leaves 0.4, 0.3, 0.2 of 0.9 in all; 0.7 / 0.9 = 0.78 reaches top_p 0.75, so 0.2 goes, which it would not
    # if top_p came first.
    assert_distributed(frequencies(logits_of(0.1, 0.4, 0.2, 0.3), top_k=3, top_p=0.75), [0, 4 / 7, 0, 3 / 7])


def test_a_repetition_penalty_divides_positive_and_multiplies_negative_logits_of_seen_tokens() -> None:
    logits = torch.tensor([2.0, 1.0, -0.5, -0.5])
    expected = torch.tensor([1.0, 1.0, -1.0, -0.5]).softmax(-1).tolist()
    assert_distributed(frequencies(logits, seen=[0, 2], repetition_penalty=2.0), expected)


def test_a_repetition_penalty_commutes_with_the_temperature() -> None:
    logits = torch.tensor([2.0, 1.0, -0.5])
    expected = (torch.tensor([1.0, 1.0, -1.0]) / 0.5).softmax(-1).tolist()
    assert_distributed(frequencies(logits, seen=[0, 2], repetition_penalty=2.0, temperature=0.5), expected)


def test_a_repetition_penalty_can_change_the_greedy_choice() -> None:
    logits = torch.tensor([[2.0, 1.5]])
    seen = torch.tensor([[True, False]])
    drawn = draw(logits, params(temperature=0.0, repetition_penalty=2.0), torch.zeros(1).double(), seen)
    assert drawn.tokens_B.tolist() == [1]


@pytest.mark.parametrize(
    "filters", [{}, {"top_k": 1}, {"top_p": 0.3}, {"min_p": 0.9}, {"repetition_penalty": 3.0}], ids=str
)
def test_the_logprob_is_that_of_the_tempered_softmax_before_filters_and_penalties(filters: dict[str, Any]) -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, -1.0]] * 4)
    numbers = torch.tensor([0.0, 0.3, 0.8, 0.99], dtype=torch.float64)
    drawn = draw(logits, params(temperature=0.7, **filters), numbers, torch.tensor([[True, True, False, False]] * 4))
    expected = (logits / 0.7).log_softmax(-1).gather(-1, drawn.tokens_B[:, None])[:, 0]
    torch.testing.assert_close(drawn.logprobs_B, expected)


def test_the_logprob_of_a_greedy_token_is_that_of_temperature_1() -> None:
    drawn = draw(torch.tensor([[1.0, 3.0]]), params(temperature=0.0), torch.zeros(1).double())
    assert drawn.logprobs_B.item() == pytest.approx(-math.log(1 + math.exp(-2)))


def test_logprobs_of_bf16_logits_are_computed_in_fp32() -> None:
    logits = torch.randn(3, 1000, generator=torch.Generator().manual_seed(0)).bfloat16()
    drawn = draw(logits, params(), torch.tensor([0.1, 0.5, 0.9]).double())
    assert drawn.logprobs_B.dtype == torch.float32
    expected = logits.float().log_softmax(-1).gather(-1, drawn.tokens_B[:, None])[:, 0]
    torch.testing.assert_close(drawn.logprobs_B, expected)


def test_logits_of_a_whole_batch_are_not_changed() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    draw(logits, params(top_k=1, temperature=2.0), torch.zeros(1).double())
    assert logits.tolist() == [[1.0, 2.0, 3.0]]


@settings(deadline=None, max_examples=200)
@given(
    possible=st.lists(st.booleans(), min_size=1, max_size=400).filter(any),
    number=st.one_of(st.floats(0, 1, exclude_max=True), st.sampled_from([0.0, 1 - 2.0**-53])),
    seed=st.integers(0, 2**31),
    filters=st.sampled_from([{}, {"top_p": 0.9}, {"top_k": 3}, {"min_p": 0.2}]),
)
def test_a_token_of_probability_0_is_never_drawn(
    possible: list[bool], number: float, seed: int, filters: dict[str, Any]
) -> None:
    logits = 20 * torch.randn(1, len(possible), generator=torch.Generator().manual_seed(seed))
    logits[0, ~torch.tensor(possible)] = -math.inf
    drawn = draw(logits, params(**filters), torch.tensor([number], dtype=torch.float64))
    assert possible[drawn.tokens_B.item()]
    assert math.isfinite(drawn.logprobs_B.item())


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**31), size=st.sampled_from([1, 2, 127, 128, 129, 300]))
def test_a_larger_uniform_number_never_draws_an_earlier_token(seed: int, size: int) -> None:
    logits = torch.randn(1, size, generator=torch.Generator().manual_seed(seed)).expand(50, -1)
    numbers = torch.from_numpy(np.sort(np.random.default_rng(seed).random(50)))
    tokens = draw(logits, params(), numbers).tokens_B
    assert (tokens.diff() >= 0).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_show_in_the_logprob_of_their_row_alone(bad: float, temperature: float) -> None:
    logits = torch.tensor([[0.0, bad, 1.0], [0.0, 1.0, 2.0], [-math.inf] * 3])
    drawn = draw(logits, params(temperature=temperature), torch.full((3,), 0.5).double())
    assert torch.isfinite(drawn.logprobs_B).tolist() == [False, True, False]
    assert (drawn.tokens_B < 3).all()


@settings(max_examples=30, deadline=None)
@given(offset=st.floats(-1e4, 1e4), scale=st.sampled_from([0.1, 1.0, 20.0]), temperature=st.sampled_from([0.6, 1.0]))
def test_an_offset_of_all_logits_costs_the_logprob_no_digit(offset: float, scale: float, temperature: float) -> None:
    logits_BV = torch.randn(16, 500, generator=torch.Generator().manual_seed(1)) * scale + offset
    drawn = draw(logits_BV, params(temperature=temperature), torch.linspace(0, 0.99, 16, dtype=torch.float64))
    exact_BV = (logits_BV.double() / temperature).log_softmax(-1)
    found_B = exact_BV.gather(-1, drawn.tokens_B[:, None]).squeeze(-1)
    torch.testing.assert_close(drawn.logprobs_B.double(), found_B, rtol=3e-7, atol=3e-6)
