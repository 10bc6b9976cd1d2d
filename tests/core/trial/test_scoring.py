"""Completions that no model drew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.errors import RewardError
from grpo_core.trial.scoring import make_group, score, stand_in_ids
from grpo_core.types import Failed, FinishReason
from tests.core.trial.making import answers, scorer


def test_texts_are_scored_in_their_order_group_by_group() -> None:
    groups = [make_group(sample, ["<answer>1</answer>", "<answer>2</answer>"]) for sample in answers(1, 2)]
    with scorer("exact") as made:
        assert [one.outcomes["exact"] for one in score(made, groups)] == [(1.0, 0.0), (0.0, 1.0)]


def test_any_number_of_scores_may_fail() -> None:
    with scorer("empty_is_an_error") as made:
        (one,) = score(made, [make_group(answers(1)[0], [""])])
    (outcome,) = one.outcomes["empty_is_an_error"]
    assert isinstance(outcome, Failed)
    assert "ZeroDivisionError" in outcome.reason


def test_prompt_tokens_and_reasons_are_what_they_are_said_to_be() -> None:
    group = make_group(
        answers(1)[0], ["a"], prompt="user: 1?", token_ids=[[5, 6]], finish_reasons=[FinishReason.LENGTH]
    )
    assert group.request.prompt_text == "user: 1?"
    assert group.completions[0].token_ids == (5, 6)
    assert group.completions[0].truncated


def test_stand_ins_are_one_a_word_or_sign_and_equal_for_equal_words() -> None:
    ids = stand_in_ids("a+b = a, 九 ")
    assert len(ids) == 7
    assert ids[0] == ids[4]
    assert len(set(ids)) == 6


@given(st.text())
def test_every_text_has_stand_ins(text: str) -> None:
    assert stand_in_ids(text) == stand_in_ids(text)


def test_a_reward_that_cannot_be_bound_is_a_fault_of_who_asked() -> None:
    with pytest.raises(RewardError) as caught, scorer("exact", columns=["gold"]):
        pass
    assert caught.value.exit_code == 2
