"""Which arguments a reward gets, and every reason why it cannot be bound."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.errors import RewardError
from grpo_core.reward.binding import Answer, RunValues, TrainerState, bind
from grpo_core.types.reserved import RESERVED_NAMES
from tests.core.reward import rewards_of_a_user as rewards
from tests.core.reward.making import group

RUN = RunValues(step=3, epoch=0.5, progress=0.1, max_steps=30)


def answers(*texts: str, **columns: object) -> list[Answer]:
    made = group(texts, columns)
    return [Answer(request=made.request, completion=completion) for completion in made.completions]


def arguments(function: Any, columns: dict[str, object], **renames: str) -> dict[str, object]:
    bound = bind(function, name="r", columns=columns, renames=renames)
    return bound.arguments(answers("a", "b", **columns), RUN)


def test_parameters_get_the_runs_values_and_columns_of_their_name() -> None:
    def reward(completions, solution, step):
        pass

    assert arguments(reward, {"solution": "4", "level": 2}) == {
        "completions": ["a", "b"],
        "solution": ["4", "4"],
        "step": 3,
    }


def test_every_reserved_name_has_its_meaning() -> None:
    def reward(
        prompts, messages, completions, completion_ids, finish_reasons, sample_ids, epoch, progress, trainer_state
    ):
        pass

    assert arguments(reward, {}) == {
        "prompts": ["user: 1+1?\nassistant:"] * 2,
        "messages": [[{"role": "user", "content": "1+1?"}]] * 2,
        "completions": ["a", "b"],
        "completion_ids": [[97], [98]],
        "finish_reasons": ["stop", "stop"],
        "sample_ids": ["train-000000"] * 2,
        "epoch": 0.5,
        "progress": 0.1,
        "trainer_state": TrainerState(global_step=2, max_steps=30, epoch=0.5),
    }


def test_kwargs_get_every_other_column_and_every_reserved_name_but_none_twice() -> None:
    def reward(completions, answer, **rest):
        pass

    got = arguments(reward, {"solution": "4", "level": 2}, answer="solution")
    assert got["answer"] == ["4", "4"]
    assert got["level"] == [2, 2]
    assert "solution" not in got
    assert RESERVED_NAMES - set(got) == {"record"}


def test_a_column_that_a_row_lacks_is_none_there() -> None:
    def reward(solution):
        pass

    bound = bind(reward, name="r", columns=["solution"])
    assert bound.arguments(answers("a", level=1), RUN) == {"solution": [None]}


def test_a_default_makes_a_parameter_optional() -> None:
    assert "hint" not in arguments(rewards.optional, {"solution": "4"})
    assert arguments(rewards.optional, {"hint": "h"})["hint"] == ["h", "h"]


def test_partials_and_callable_objects_bind_by_their_own_signature() -> None:
    def reward(completions, scale, solution):
        pass

    assert set(arguments(functools.partial(reward, scale=2), {"solution": 1})) == {"completions", "solution"}
    assert set(arguments(rewards.callable_object, {})) == {"completions"}


def test_record_is_made_by_the_caller() -> None:
    bound = bind(rewards.records, name="r", columns=["solution"])
    assert bound.records
    assert "record" not in bound.arguments(answers("a", solution="a"), RUN)


def refused(function: object, *columns: str, **renames: str) -> str:
    with pytest.raises(RewardError) as caught:
        bind(function, name="my_reward", columns=columns, renames=renames)
    return str(caught.value)


def test_a_missing_column_names_the_columns_that_exist_and_how_to_rename() -> None:
    def reward(completions, solutoin, level):
        pass

    message = refused(reward, "solution", "task")
    assert "reward 'my_reward': its parameter 'solutoin' is neither a dataset column nor a name of the run" in message
    assert "did you mean 'solution'?" in message
    assert "the dataset has solution, task" in message
    assert "`columns: {solutoin: <column>}`" in message
    assert "'level'" in message, "all missing columns are named at once"


def test_a_near_miss_of_a_reserved_name_is_suggested() -> None:
    def reward(completion):
        pass

    assert "did you mean 'completions'?" in refused(reward)
    assert "the dataset has no columns besides the prompt" in refused(reward)


def test_a_wrong_rename_says_what_is_wrong_with_it() -> None:
    def reward(completions, answer):
        pass

    assert (
        "gives 'answer' the column 'solutoin', which the dataset does not have (did you mean 'solution'?)"
        in refused(reward, "solution", answer="solutoin")
    )
    message = refused(reward, "solution", answr="solution")
    assert "names a parameter 'answr', which it does not have (did you mean 'answer'?)" in message
    assert "gives 'completions' a column, but that name means the run's own completions" in refused(
        reward, "answer", completions="answer"
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (rewards.by_position, "takes 'completions' by position, but arguments are bound by name"),
        (rewards.by_star, r"takes '*columns' by position"),
        (rewards.NotAFunction, "is a class, not a function"),
        (rewards.not_callable, "is int: 3, not a function"),
        (dict.fromkeys, "takes 'iterable' by position"),
        (min, "does not say which parameters it takes"),
    ],
)
def test_what_cannot_be_called_by_name_is_refused_with_the_reason(function: object, message: str) -> None:
    assert message in refused(function)


columns = st.dictionaries(
    st.sampled_from(["solution", "level", "task", "nums"]), st.integers() | st.lists(st.text()), max_size=4
)


@given(columns, columns)
def test_identity_is_equal_exactly_when_completion_and_bound_columns_are(first, second) -> None:
    def reward(completions, solution=None, nums=None):
        pass

    bound = bind(reward, name="r", columns=["solution", "level", "task", "nums"])
    same = all(first.get(name) == second.get(name) for name in ("solution", "nums"))
    assert (bound.identity(answers("a", **first)[0]) == bound.identity(answers("a", **second)[0])) == same
    assert bound.identity(answers("a", **first)[0]) != bound.identity(answers("b", **first)[0])


def test_identity_tells_values_apart_that_python_calls_equal() -> None:
    bound = bind(rewards.solves, name="r", columns=["solution"])
    found = {bound.identity(answers("a", solution=value)[0]) for value in (1, 1.0, True, "1", [1])}
    assert len(found) == 5


def test_a_column_that_cannot_be_pickled_is_identical_only_within_its_sample() -> None:
    bound = bind(rewards.solves, name="r", columns=["solution"])
    unpicklable = (lambda: None,)
    first, again = answers("a", "a", solution=unpicklable)
    assert bound.identity(first) == bound.identity(again)
    assert bound.identity(first) != bound.identity(answers("a", solution=unpicklable)[0])
