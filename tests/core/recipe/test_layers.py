from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.recipe.layers import EXCLUSIVE, Layer, display_path, join, layer_of, make_layer, merge, reward_name
from grpo_core.recipe.syntax import KeyPath, all_paths

_BASE = Path("/base")


def _layer(values: dict[str, Any], origin: str) -> Layer:
    return make_layer(values, dict.fromkeys(all_paths(values), origin), base=_BASE)


# Keys that carry no rule of their own: what is left is the merging of mappings.
_LEAVES = st.integers(0, 5) | st.lists(st.integers(0, 2), max_size=2)
_SECTIONS = st.sampled_from(["scoring", "advantage", "x"])
_MAPPINGS = st.dictionaries(st.sampled_from("cd"), _LEAVES)
_TREES = st.dictionaries(_SECTIONS, st.dictionaries(st.sampled_from("ab"), _MAPPINGS | _LEAVES))
_OF_ONE_KIND = st.dictionaries(_SECTIONS, st.fixed_dictionaries({}, optional={"a": _MAPPINGS, "b": _LEAVES}))
"""Each key always a mapping, or never: as in any schema, and what associativity needs."""


def _leaves(values: Any, path: KeyPath = ()) -> dict[KeyPath, Any]:
    if not isinstance(values, dict):
        return {path: values}
    return {inner: value for key, below in values.items() for inner, value in _leaves(below, (*path, key)).items()}


@given(_OF_ONE_KIND, _OF_ONE_KIND, _OF_ONE_KIND)
def test_merging_is_associative(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    one, two, three = _layer(a, "a"), _layer(b, "b"), _layer(c, "c")
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


@given(_TREES, _TREES)
def test_every_value_of_the_upper_layer_wins(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    merged = _leaves(merge(_layer(lower, "low"), _layer(upper, "high")).values)
    for path, value in _leaves(upper).items():
        assert merged[path] == value


@given(_TREES, _TREES)
def test_origins_name_who_set_the_value(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    merged = merge(_layer(lower, "low"), _layer(upper, "high"))
    above = _leaves(upper)
    for path, value in _leaves(merged.values).items():
        assert merged.origins[path] == ("high" if path in above else "low")
        assert value == (above[path] if path in above else _leaves(lower)[path])
    assert set(merged.origins) == set(all_paths(merged.values))


@given(_TREES)
def test_an_empty_layer_changes_nothing(values: dict[str, Any]) -> None:
    layer = _layer(values, "it")
    assert merge(layer, Layer()) == layer == merge(Layer(), layer)


def test_mappings_merge_and_lists_replace() -> None:
    merged = merge(
        _layer({"rollout": {"stop": ["a", "b"], "top_p": 0.5}}, "low"), _layer({"rollout": {"stop": ["c"]}}, "high")
    )
    assert merged.values == {"rollout": {"stop": ["c"], "top_p": 0.5}}
    assert ("rollout", "stop", 1) not in merged.origins


def test_shorthands_are_spelled_out() -> None:
    layer = _layer(
        {"model": "hub/id", "dataset": "countdown", "rollout": "vllm", "rewards": ["a", {"use": "b"}]}, "f:1"
    )
    assert layer.values == {
        "model": {"path": "hub/id"},
        "dataset": {"use": "countdown"},
        "rollout": {"use": "vllm"},
        "rewards": [{"use": "a"}, {"use": "b"}],
    }
    assert layer.origins[("model", "path")] == "f:1"
    assert layer.origins[("rewards", 0, "use")] == "f:1"


def test_a_shorthand_merges_with_the_section_below() -> None:
    merged = merge(_layer({"model": {"path": "a/b", "revision": "main"}}, "low"), _layer({"model": "c/d"}, "high"))
    assert merged.values == {"model": {"path": "c/d", "revision": "main"}}


def test_an_empty_section_is_as_good_as_none() -> None:
    merged = merge(_layer({"rollout": {"top_p": 0.5}}, "low"), _layer({"rollout": None}, "high"))
    assert merged.values == {"rollout": {"top_p": 0.5}}


def test_an_unknown_empty_key_stays_to_be_reported() -> None:
    assert _layer({"rolout": None}, "it").values == {"rolout": None}


@pytest.mark.parametrize("section", ["dataset", "rollout", "trainer"])
def test_another_component_does_not_inherit_the_options(section: str) -> None:
    lower = _layer({section: {"use": "one", "options": {"a": 1}, "b": 2}}, "low")
    assert merge(lower, _layer({section: "two"}, "high")).values == {section: {"use": "two", "b": 2}}
    kept = merge(lower, _layer({section: {"use": "one#500", "options": {"c": 3}}}, "high"))
    assert kept.values[section]["options"] == {"a": 1, "c": 3}


def test_the_options_given_with_another_component_are_its_own() -> None:
    merged = merge(
        _layer({"rollout": {"use": "one", "options": {"a": 1}}}, "low"),
        _layer({"rollout": {"use": "two", "options": {"b": 2}}}, "high"),
    )
    assert merged.values == {"rollout": {"use": "two", "options": {"b": 2}}}
    assert ("rollout", "options", "a") not in merged.origins


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ({"run": {"steps": 5}}, {"run": {"epochs": 2}}),
        ({"run": {"epochs": 2}}, {"run": {"steps": 5}}),
        ({"run": {"prompts_per_step": 8}}, {"run": {"completions_per_step": 64}}),
        ({"trainer": {"warmup_share": 0.1}}, {"trainer": {"warmup_updates": 5}}),
    ],
)
def test_the_upper_of_two_that_exclude_each_other_stays(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    merged = merge(_layer(lower, "low"), _layer(upper, "high"))
    assert merged.values == upper
    assert set(merged.origins.values()) == {"high"}


def test_two_that_exclude_each_other_in_one_layer_both_stay_to_be_reported() -> None:
    both = {"run": {"steps": 5, "epochs": 2}}
    assert merge(_layer({"run": {"steps": 1}}, "low"), _layer(both, "high")).values == both


def test_null_overrules_nothing_but_its_own_key() -> None:
    merged = merge(_layer({"run": {"epochs": 2}}, "low"), _layer({"run": {"steps": None}}, "high"))
    assert merged.values == {"run": {"epochs": 2, "steps": None}}


def test_parts_of_one_layer_keep_their_contradictions() -> None:
    parts = [layer_of(("run", key), 1, f"--{key}", base=_BASE) for key in ("steps", "epochs")]
    joined = join(parts)
    assert joined.values == {"run": {"steps": 1, "epochs": 1}}
    assert joined.origin_of(("run", "steps")) == "--steps"


def test_the_origin_of_what_nobody_set_is_that_of_what_it_is_in() -> None:
    layer = layer_of(("run", "seed"), 1, "--seed", base=_BASE)
    assert layer.origin_of(("run", "steps")) == "--seed"
    assert layer.origin_of(("model",)) is None


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"use": "format_reward"}, "format_reward"),
        ({"use": "grpo-rewards-math/countdown_reward"}, "countdown_reward"),
        ({"use": "./mine.py:my_reward"}, "my_reward"),
        ({"use": "pkg.mod:Class.score"}, "score"),
        ({"use": "a", "name": "b"}, "b"),
        ({"use": 3}, None),
        ({}, None),
        (7, None),
    ],
)
def test_a_reward_is_called_by_its_name_or_the_end_of_its_use(entry: object, name: str | None) -> None:
    assert reward_name(entry) == name


def test_paths_show_rewards_by_name() -> None:
    values = {"rewards": [{"use": "a/b"}, 7]}
    assert display_path(("rewards", 0, "options", "x.y"), values) == 'rewards.b.options."x.y"'
    assert display_path(("rewards", 1), values) == "rewards.1"
    assert display_path(("rewards", 9, "use"), values) == "rewards.9.use"
    assert display_path(("run", "steps"), values) == "run.steps"


_DATASETS = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {"use": st.sampled_from(["a", "b?x=1", "b"])}, optional={"options": st.just({"o": 1}), "system": st.just("s")}
    ),
    st.fixed_dictionaries(
        {"mix": st.just(["a", {"use": "b", "weight": 1}])}, optional={"columns": st.just({"c": "d"})}
    ),
)
_RUNS = st.sampled_from(
    [{}, {"steps": 3}, {"epochs": 2}, {"epochs": 2, "prompts_per_step": 4}, {"completions_per_step": 8}]
)
_SETTINGS = st.fixed_dictionaries({"dataset": _DATASETS, "run": _RUNS})


@given(st.lists(_SETTINGS, min_size=1, max_size=4))
def test_of_settings_that_exclude_each_other_the_last_one_stays_alone(layers: list[dict[str, Any]]) -> None:
    merged = reduce(merge, (_layer(values, str(place)) for place, values in enumerate(layers)))
    for (section, one), (_, other) in EXCLUSIVE[:3]:
        given_in = [place for place, values in enumerate(layers) if {one, other} & values.get(section, {}).keys()]
        left = {one, other} & merged.values[section].keys()
        assert left == ({one, other} & layers[given_in[-1]][section].keys() if given_in else set())
    dataset = merged.values["dataset"]
    assert not ("mix" in dataset and "options" in dataset)
    assert set(merged.origins) == set(all_paths(merged.values))
