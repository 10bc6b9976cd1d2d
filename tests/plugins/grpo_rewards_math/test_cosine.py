"""cosine: right answers between their ends by length, wrong ones between theirs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from grpo_core.api import BuildContext
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_rewards_math.cosine import make, scaled
from grpo_rewards_math.cosine_options import CosineOptions
from tests.cases.scored import group_of, plan_reward

DEFAULTS = CosineOptions()


@pytest.mark.parametrize(
    ("is_correct", "tokens", "score"),
    [
        (True, 0, 1.0),
        (True, 500, 0.75),
        (True, 750, 0.5732233),
        (True, 1000, 0.5),
        (True, 1500, 0.5),
        (True, 2000, 0.5),
        (False, 0, -1.0),
        (False, 250, -0.9267767),
        (False, 500, -0.75),
        (False, 1000, -0.5),
        (False, 2000, -0.5),
    ],
)
def test_the_schedule_is_a_half_cosine_that_stays_at_its_end(is_correct: bool, tokens: int, score: float) -> None:
    assert scaled(is_correct, tokens, DEFAULTS) == pytest.approx(score)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_a_longer_right_answer_never_earns_more_and_always_more_than_a_wrong_one(short: int, more: int) -> None:
    assert scaled(True, short, DEFAULTS) >= scaled(True, short + more, DEFAULTS)
    assert scaled(False, short, DEFAULTS) <= scaled(False, short + more, DEFAULTS)
    assert scaled(True, short + more, DEFAULTS) > scaled(False, short, DEFAULTS)


def test_correctness_is_that_of_math_reward_and_length_is_in_tokens() -> None:
    reward = make(CosineOptions(max_len=10), BuildContext())
    texts = [r"\boxed{\frac12}", r"\boxed{3}", r"\boxed{3}"]
    scores = reward(texts, [[0] * 10, [0] * 5, []], ["0.5", "4", None])
    assert scores == [0.5, pytest.approx(-0.75), None]


def test_ends_that_pay_wrong_answers_more_than_right_ones_are_refused() -> None:
    with pytest.raises(ValidationError, match="some wrong answers would score more than some right ones"):
        CosineOptions(correct_long=-0.6)


def test_an_answer_that_hangs_the_judge_scores_no_more_than_the_worst_wrong_one() -> None:
    # The integral has no closed form that sympy finds in time; whatever becomes of it, it must not pay 0.
    reward = plan_reward("cosine").model_copy(update={"budget_s": 0.05})
    scorer = Scorer([reward], ScoringSettings(workers=1), {"solution"}, BuildContext())
    try:
        step = scorer.begin(step=1, epoch=0.0, progress=0.0, max_steps=1)
        step.add(group_of([r"\boxed{\int_0^1 \sin(x^3) e^{\cos x} \ln(x+2) dx}"], {"solution": r"\sqrt{2}"}))
        (scored,) = step.finish()
    finally:
        scorer.close()
    assert scored.outcomes["cosine"] == (-1.0,)
