from pathlib import Path
from typing import Any

import pytest

from grpo_core.recipe.entries import apply_overrides, weigh
from grpo_core.recipe.layers import Layer, make_layer
from grpo_core.recipe.overrides import parse_override
from grpo_core.recipe.syntax import all_paths

_BASE = Path("/base")


def _with_rewards(*entries: Any) -> Layer:
    values = {"rewards": list(entries)}
    return make_layer(values, dict.fromkeys(all_paths(values), "r.yaml:1"), base=_BASE)


def _set(layer: Layer, *texts: str) -> Layer:
    return apply_overrides(layer, map(parse_override, texts), base=_BASE)


def test_an_option_of_a_reward_is_set_by_the_rewards_name() -> None:
    layer = _set(_with_rewards("a", {"use": "x/code_reward", "options": {"b": 1}}), "rewards.code_reward.options.c=2")
    assert layer.values["rewards"] == [{"use": "a"}, {"use": "x/code_reward", "options": {"b": 1, "c": 2}}]
    assert layer.origins[("rewards", 1, "options", "c")] == "--set"
    assert layer.origins[("rewards", 1, "options", "b")] == "r.yaml:1"
    assert layer.origins[("rewards", 0, "use")] == "r.yaml:1"
    assert layer.dotted_origins()["rewards.code_reward.options.c"] == "--set"


def test_a_reward_with_a_name_of_its_own_is_addressed_by_that() -> None:
    layer = _set(_with_rewards({"use": "a", "name": "mine"}), "rewards.mine.weight=0.5")
    assert layer.values["rewards"] == [{"use": "a", "name": "mine", "weight": 0.5}]


def test_several_overrides_of_one_reward_add_up() -> None:
    layer = _set(_with_rewards("a"), "rewards.a.weight=2", "rewards.a={tasks: [math]}")
    assert layer.values["rewards"] == [{"use": "a", "weight": 2, "tasks": ["math"]}]


def test_a_path_in_an_override_starts_at_the_working_directory() -> None:
    layer = _set(_with_rewards({"use": "./x.py:f", "name": "n"}), "rewards.n.use=./y.py:g")
    assert layer.values["rewards"][0]["use"] == "/base/y.py:g"


@pytest.mark.parametrize("name", ["0", "b"])
def test_an_unknown_reward_lists_those_there_are(name: str) -> None:
    layer = _set(_with_rewards("a", "c"), f"rewards.{name}.weight=2")
    [problem] = layer.problems
    assert str(problem) == f"rewards.{name}.weight: no reward of this recipe is named '{name}'; it has: a, c (--set)"


def test_an_override_of_a_reward_without_rewards_says_so() -> None:
    [problem] = _set(Layer(), "rewards.a.weight=2").problems
    assert problem.message == "no reward of this recipe is named 'a'; it has: none"


def test_two_rewards_of_one_name_cannot_be_addressed() -> None:
    [problem] = _set(_with_rewards("a", "x/a"), "rewards.a.weight=2").problems
    assert problem.message == "2 rewards of this recipe are named 'a'; give each a `name` of its own"


def test_the_list_of_rewards_is_replaced_as_a_whole() -> None:
    assert _set(_with_rewards("a", "b"), "rewards=[c]").values["rewards"] == [{"use": "c"}]


def test_rewards_are_addressed_once_their_list_is_complete() -> None:
    layer = _set(_with_rewards("a"), "rewards.b.weight=2", "rewards=[b]")
    assert layer.values["rewards"] == [{"use": "b", "weight": 2}]


def test_the_order_of_overrides_does_not_lose_options() -> None:
    texts = ["rollout.options.a=1", "rollout.use=other"]
    for order in (texts, texts[::-1]):
        assert _set(Layer(), *order).values == {"rollout": {"use": "other", "options": {"a": 1}}}


def test_of_two_overrides_of_one_key_the_later_wins() -> None:
    assert _set(Layer(), "run.seed=1", "run.seed=2").values == {"run": {"seed": 2}}


def test_other_settings_are_nested() -> None:
    layer = _set(Layer(), "trainer.learning_rate=1e-5")
    assert layer.values == {"trainer": {"learning_rate": 1e-5}}
    assert layer.origins == {("trainer",): "--set", ("trainer", "learning_rate"): "--set"}


def test_weights_go_to_rewards_in_order() -> None:
    layer = weigh(_with_rewards("a", {"use": "b", "weight": 3}), ("rewards",), [1, 0.5], origin="--reward-weights")
    assert layer.values["rewards"] == [{"use": "a", "weight": 1}, {"use": "b", "weight": 0.5}]
    assert layer.origins[("rewards", 1, "weight")] == "--reward-weights"


def test_a_wrong_number_of_weights_names_both_sides() -> None:
    [problem] = weigh(_with_rewards("a", "b"), ("rewards",), [1, 0.5, 2], origin="--reward-weights").problems
    assert problem.message == "3 weights (1, 0.5, 2) for 2 rewards (a, b); give one weight a reward, in the same order"


@pytest.mark.parametrize("layer", [Layer(), _with_rewards(7), Layer(values={"rewards": 3})])
def test_weights_without_sound_rewards_are_left_to_validation(layer: Layer) -> None:
    assert weigh(layer, ("rewards",), [1], origin="--reward-weights") == layer
