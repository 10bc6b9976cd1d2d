from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.errors import RecipeError
from grpo_core.recipe.layers import Layer, make_layer, merge
from grpo_core.recipe.syntax import all_paths
from grpo_core.recipe.validate import examine, validate


def _layer(values: dict[str, Any], origin: str = "r.yaml:1") -> Layer:
    return make_layer(values, dict.fromkeys(all_paths(values), origin), base=Path("/b"))


_SOUND: dict[str, Any] = {"model": "m", "dataset": "d", "rewards": ["a"]}


def test_a_sound_recipe_is_given_back() -> None:
    recipe = validate(_layer({**_SOUND, "run": {"steps": 3}}))
    assert recipe.model.path == "m"
    assert recipe.rewards[0].use == "a"
    assert recipe.run.steps == 3


def test_every_problem_is_reported_with_path_and_origin() -> None:
    values = {
        "datset": "d",
        "rewards": ["fine", {"use": "./mine.py:foo", "weight": float("nan"), "wieght": 3}, 7],
        "rollout": {"completions_per_prompt": True, "temprature": 1},
        "objective": {"importance": {"cap": 0.5}},
        "run": {"completions_per_step": 7, "steps": 3, "epochs": 1},
    }
    with pytest.raises(RecipeError) as caught:
        validate(_layer(values))
    assert sorted(map(str, caught.value.problems)) == [
        "dataset: required, but not set",
        "datset: unknown key; did you mean 'dataset'? (r.yaml:1)",
        "model: required, but not set",
        "objective.importance.cap: must be at least 1, not 0.5 (r.yaml:1)",
        "rewards.2: must be a mapping of keys to values, not 7 (r.yaml:1)",
        "rewards.foo.weight: must be a finite number, not NaN (r.yaml:1)",
        "rewards.foo.wieght: unknown key; did you mean 'weight'? (r.yaml:1)",
        "rollout.completions_per_prompt: must be a whole number, not true (r.yaml:1)",
        "rollout.temprature: unknown key; did you mean 'temperature'? (r.yaml:1)",
        "run.epochs: epochs is 1 and steps is 3, but only one of them can hold; remove one (r.yaml:1)",
    ]


def test_a_contradiction_between_sound_values_is_found_beside_wrong_ones() -> None:
    values = {"rollout": {"top_p": 3, "completions_per_prompt": 4}, "run": {"completions_per_step": 6}}
    examined = examine(_layer({**_SOUND, **values}))
    assert [problem.path for problem in examined.problems] == ["rollout.top_p", "run.completions_per_step"]
    assert examined.recipe is not None
    assert examined.recipe.rollout.top_p == 1.0


def test_a_contradiction_with_a_wrong_value_is_not_made_up() -> None:
    values = {"rollout": {"completions_per_prompt": 0}, "run": {"completions_per_step": 7}}
    [problem] = examine(_layer({**_SOUND, **values})).problems
    assert str(problem) == "rollout.completions_per_prompt: must be at least 2, not 0 (r.yaml:1)"


def test_a_missing_key_does_not_blame_a_flag_that_set_its_neighbour() -> None:
    layer = merge(_layer({"model": "m", "rewards": ["a"]}), _layer({"dataset": {"columns": {"a": "b"}}}, "--columns"))
    [problem] = examine(layer).problems
    assert str(problem) == "dataset.use: required, but not set"


def test_a_missing_key_names_the_line_of_its_section() -> None:
    [problem] = examine(_layer({"model": "m", "dataset": {"columns": {}}, "rewards": ["a"]}, "r.yaml:4")).problems
    assert str(problem) == "dataset.use: required, but not set (r.yaml:4)"


def test_no_rewards_are_a_problem_of_rewards() -> None:
    [problem] = examine(_layer({**_SOUND, "rewards": []}, "--rewards")).problems
    assert str(problem) == "rewards: is empty; give at least 1 (--rewards)"


def test_an_only_entry_with_a_wrong_value_does_not_make_its_list_empty() -> None:
    entry = {"use": "a", "weight": "much"}
    with pytest.raises(RecipeError) as caught:
        validate(_layer({"model": "m", "dataset": {"mix": [{**entry, "weight": -1}]}, "rewards": [entry]}))
    assert sorted(problem.path for problem in caught.value.problems) == ["dataset.mix.a.weight", "rewards.a.weight"]


def test_problems_of_the_layers_come_first() -> None:
    layer = _layer({**_SOUND, "dataset": "rows.jsonl#x", "run": {"steps": 0}})
    assert [problem.path for problem in examine(layer).problems] == ["dataset.use", "run.steps"]


def test_what_was_given_is_left_alone() -> None:
    values = {**_SOUND, "run": {"steps": 0}, "rewards": [{"use": 3}]}
    layer = _layer(values)
    examine(layer)
    assert layer.values["run"] == {"steps": 0}
    assert layer.values["rewards"] == [{"use": 3}]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["use", "name", "weight", "x"]), inner),
    max_leaves=6,
)
_KEYS = ["model", "dataset", "rewards", "rollout", "trainer", "run", "evaluation", "objective", "plugins", "summary"]


@given(st.dictionaries(st.sampled_from(_KEYS) | st.text(max_size=3), _VALUES))
def test_any_settings_are_a_recipe_or_have_problems(values: dict[str, Any]) -> None:
    examined = examine(_layer(values))
    assert examined.problems or examined.recipe is not None
    for problem in examined.problems:
        assert "pydantic" not in problem.message
        assert "Input" not in problem.message
