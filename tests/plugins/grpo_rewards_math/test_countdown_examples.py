"""Solved problems before the question: right, of the kind asked for, and never of the evaluation."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.api import BuildContext
from grpo_core.reward.builtin.think_answer import format_reward
from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.prompt import make
from grpo_rewards_math.countdown.reward import countdown_reward
from grpo_rewards_math.countdown.source import split_of

PLAIN = "{numbers} -> {target}"


def sample(row, **options):
    return make(CountdownOptions(template=PLAIN, **options), BuildContext())(row)


@settings(max_examples=20, deadline=None)
@given(examples=st.integers(1, 5), operations=st.sampled_from(["+-", "+-*/"]), many=st.integers(2, 4))
def test_every_example_is_a_right_answer_in_the_right_form(examples, operations, many):
    options = {"examples": examples, "operations": operations, "min_numbers": 2, "max_numbers": many}
    *shown, question = sample({"nums": [5, 3], "target": 8}, **options).messages
    assert question.content == "5, 3 -> 8"
    assert [message.role for message in shown] == ["user", "assistant"] * examples
    for asked, answered in zip(shown[::2], shown[1::2], strict=True):
        *nums, target = map(int, re.findall(r"\d+", asked.content))
        assert countdown_reward([answered.content], [nums], [target]) == [1.0]
        assert format_reward([answered.content]) == [1.0]
        assert split_of(nums, target) == "train"


def test_an_example_is_written_with_room_between_its_signs():
    _, answer, _ = sample({"nums": [5, 3], "target": 8}, examples=1, min_numbers=2, max_numbers=2).messages
    assert re.fullmatch(r"<think>\d+ . \d+ = \d+</think><answer>\d+ . \d+</answer>", answer.content)


def test_examples_come_after_the_system_prompt_and_before_a_rows_own_turns():
    row = {"nums": [5, 3], "target": 8, "system": "Be brief.", "history": [["Hi", "Hello"]]}
    messages = sample(row, examples=1).messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[3].content == "Hi"


def test_without_being_asked_for_there_are_none():
    assert len(sample({"nums": [5, 3], "target": 8}).messages) == 1
