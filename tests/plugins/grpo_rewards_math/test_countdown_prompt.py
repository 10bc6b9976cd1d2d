"""Countdown rows become samples: what the prompt says, and which columns the rewards get."""

import pytest

from grpo_core.api import BuildContext, DataError, Message
from grpo_rewards_math.countdown.options import CountdownOptions
from grpo_rewards_math.countdown.prompt import make
from grpo_rewards_math.countdown.source import rows


def sample(row, **options):
    return make(CountdownOptions(**options), BuildContext())(row)


def prompt(row, **options):
    return sample(row, **options).messages[-1].content


def test_the_full_prompt_names_the_numbers_the_target_the_operations_the_rule_and_the_tags():
    text = prompt({"nums": [44, 19, 35], "target": 98})
    assert "44, 19, 35" in text
    assert "98" in text
    assert "+ - * /" in text
    assert "each number can only be used once" in text
    assert "<think></think>" in text
    assert "<answer></answer>" in text
    assert "<answer>(5 + 3) / 2</answer>" in text


def test_the_example_answer_keeps_to_the_allowed_operations():
    text = prompt({"nums": [5, 3, 2], "target": 4}, operations="+-")
    assert "+ -," in text
    assert "<answer>(5 + 3) - 2</answer>" in text


def test_the_short_prompt_is_the_problem_and_the_tags():
    assert prompt({"nums": [5, 3, 2], "target": 17}, style="short") == "5 3 2 = 17 <think></think><answer></answer>"


def test_a_template_of_ones_own_replaces_the_style():
    template = "Reach {target} with {numbers} by {operations}. Reply with JSON: {}"
    text = prompt({"nums": [5, 3], "target": 8}, template=template, operations="+-")
    assert text == "Reach 8 with 5, 3 by + -. Reply with JSON: {}"


@pytest.mark.parametrize("nums", [[5, 3, 2], (5, 3, 2), [5.0, 3.0, 2.0], "[5, 3, 2]", "5, 3, 2", ["5", "3", "2"]])
@pytest.mark.parametrize("target", [17, 17.0, "17"])
def test_numbers_are_read_however_the_column_holds_them_and_the_columns_stay_as_they_are(nums, target):
    made = sample({"nums": nums, "target": target}, style="short")
    assert made.messages[-1].content.startswith("5 3 2 = 17 ")
    assert made.columns == {"nums": nums, "target": target}


def test_a_response_column_is_the_target_and_other_columns_stay():
    made = sample({"nums": [5, 3], "response": 8, "task": "countdown", "level": None})
    assert made.columns == {"nums": [5, 3], "target": 8, "task": "countdown", "level": None}


def test_a_response_beside_a_target_stays_a_column():
    assert sample({"nums": [5, 3], "target": 8, "response": "r"}).columns["response"] == "r"


def test_history_becomes_earlier_turns():
    made = sample({"nums": [5, 3], "target": 8, "history": [["Hi", "Hello"], ["Ready?", "Yes"]]})
    assert [(turn.role, turn.content) for turn in made.messages[:-1]] == [
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "Ready?"),
        ("assistant", "Yes"),
    ]
    assert made.messages[-1].role == "user"
    assert "history" not in made.columns


def test_history_may_be_messages_and_a_system_column_opens_the_conversation():
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    made = sample({"nums": [5, 3], "target": 8, "history": history, "system": "Be brief."})
    assert made.messages[:2] == (Message(role="system", content="Be brief."), Message(role="user", content="Hi"))


@pytest.mark.parametrize("history", [None, [], ""])
def test_an_empty_history_adds_nothing(history):
    assert len(sample({"nums": [5, 3], "target": 8, "history": history}).messages) == 1


def test_the_row_is_left_as_it_was():
    row = {"nums": [5, 3], "response": 8, "history": []}
    sample(row)
    assert row == {"nums": [5, 3], "response": 8, "history": []}


def test_rows_of_the_source_keep_their_solution():
    row = next(rows(CountdownOptions(), split="train", seed=0))
    assert sample(row).columns == row


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"numbers": [5], "target": 8}, "needs a column nums; the row has numbers, target"),
        ({"nums": [5, 3]}, "needs a column target; the row has nums"),
        ({}, "needs a column nums; the row has none"),
        ({"nums": [5, "three"], "target": 8}, r"column nums: \[5, 'three'\] is not a list of numbers"),
        ({"nums": [], "target": 8}, r"column nums: \[\] is not a list of numbers"),
        ({"nums": 5, "target": 8}, "column nums: 5 is not a list of numbers"),
        ({"nums": [5, 3], "target": None}, "column target: None is not a number"),
        ({"nums": [5, 3], "target": 8, "history": "Hi"}, "column history: 'Hi' is not a list of turns"),
        ({"nums": [5, 3], "target": 8, "history": ["Hi"]}, "column history: 'Hi' is not a turn"),
    ],
)
def test_a_row_that_cannot_be_used_is_an_error_that_names_the_column(row, message):
    with pytest.raises(DataError, match=message):
        sample(row)
