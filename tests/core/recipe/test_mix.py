"""Several datasets in a recipe: their names, defaults, contradictions, and how single settings of them are reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.cli.planning import gather
from grpo_core.errors import Problem
from grpo_core.recipe.datasets import plan_datasets, training_datasets
from grpo_core.recipe.explain import explain
from grpo_core.recipe.layers import Layer, make_layer, merge
from grpo_core.recipe.mix import mix_names
from grpo_core.recipe.names import Names
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.recipe.problems import Problems
from grpo_core.recipe.resolve import resolve
from grpo_core.recipe.schema import DataSettings
from grpo_core.recipe.syntax import all_paths
from grpo_core.recipe.validate import examine
from tests.core.recipe.fakes import fake_host, recipe_of

_NAMES = Names(catalog=fake_host().catalog)
_SOUND: dict[str, Any] = {"model": "m", "rewards": ["a"]}


def layer_of_file(**dataset: Any) -> Layer:
    values = {**_SOUND, "dataset": dataset}
    return make_layer(values, dict.fromkeys(all_paths(values), "r.yaml:1"), base=Path("/b"))


def problems(**dataset: Any) -> list[str]:
    return [str(problem) for problem in examine(layer_of_file(**dataset)).problems]


def planned(**dataset: Any) -> tuple[tuple[PlannedDataset, ...], PlannedDataset | None, list[Problem]]:
    found = Problems()
    datasets, evaluation = plan_datasets(DataSettings.model_validate(dataset), found, _NAMES)
    return datasets, evaluation, found.problems


def flags(**given: Any) -> Layer:
    return gather(None, {"model": "m", "rewards": "a", **given})


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        (["hf:openai/gsm8k", "a/rows.jsonl", "b/rows.jsonl#5"], ["gsm8k", "rows", "rows_2"]),
        (["countdown", "dist/countdown", "rows.v2.jsonl"], ["countdown", "countdown_2", "rows_v2"]),
        ([{"use": "a.jsonl", "name": "b"}, "b.jsonl", "b.jsonl"], ["b", "b_2", "b_3"]),
        ([{"use": "a.jsonl", "name": "x"}, {"use": "b.jsonl", "name": "x"}], ["x", "x"]),
        ([{"use": "a:b:c"}, {}, 3, {"use": 4}], [None, None, None, None]),
    ],
)
def test_a_dataset_is_called_by_the_end_of_its_reference(entries: list[Any], names: list[str | None]) -> None:
    assert mix_names([{"use": entry} if isinstance(entry, str) else entry for entry in entries]) == names


@given(st.lists(st.sampled_from(["a.jsonl", "b.jsonl", "hf:x/a", "a_2.jsonl"]), max_size=8))
def test_derived_names_are_never_the_same(uses: list[str]) -> None:
    names = mix_names([{"use": use} for use in uses])
    assert len(set(names)) == len(uses)


def test_what_an_entry_leaves_out_it_takes_from_the_dataset_section() -> None:
    entries = training_datasets(
        DataSettings.model_validate(
            {
                "mix": ["a.jsonl", {"use": "b.jsonl", "columns": {}, "system": "Own."}],
                "columns": {"gold": "solution"},
                "system": "Shared.",
            }
        )
    )
    assert list(entries) == ["dataset.mix.a", "dataset.mix.b"]
    assert [(each.columns, each.system) for each in entries.values()] == [
        ({"gold": "solution"}, "Shared."),
        ({}, "Own."),
    ]


def test_each_dataset_is_planned_in_its_own_way() -> None:
    mix = [
        {"use": "sums", "weight": 2, "options": {"limit": 3}},
        {"use": "a.jsonl", "weight": 1, "preprocess": "shapes"},
    ]
    (one, other), evaluation, wrong = planned(mix=mix)
    assert wrong == []
    assert evaluation is None
    assert (one.name, one.weight, one.source is not None) == ("sums", 2, True)
    assert one.preprocess is not None
    assert one.preprocess.options["limit"] == 3.0
    assert (other.name, other.preprocess and other.preprocess.name) == ("a", "acme/shapes")


def test_every_dataset_that_leads_nowhere_is_reported_by_its_name() -> None:
    _, _, wrong = planned(mix=["smus", {"use": "a.jsonl", "options": {"x": 1}}, {"use": "b.jsonl", "preprocess": "c"}])
    assert [problem.path for problem in wrong] == [
        "dataset.mix.smus.use",
        "dataset.mix.a.options",
        "dataset.mix.b.preprocess",
    ]


def test_evaluation_rows_of_the_same_place_are_read_as_those_of_training() -> None:
    mix = [{"use": "hf:x/y?split=train", "preprocess": "shapes", "columns": {"a": "b"}}, "/rows.jsonl"]
    _, evaluation, wrong = planned(mix=mix, evaluation="hf:x/y?split=test", columns={"c": "d"})
    assert wrong == []
    assert evaluation is not None
    assert (evaluation.name, evaluation.reference, evaluation.columns) == ("y", "hf:x/y?split=test", {"a": "b"})
    assert evaluation.preprocess is not None
    assert evaluation.preprocess.name == "acme/shapes"


def test_other_evaluation_rows_take_the_shared_settings() -> None:
    _, evaluation, _ = planned(mix=["/a.jsonl", "/b.jsonl"], evaluation="/test.jsonl", columns={"c": "d"}, system="s")
    assert evaluation == PlannedDataset(name="test", reference="/test.jsonl", columns={"c": "d"}, system="s")


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({}, "dataset.use: required, but not set (r.yaml:1)"),
        ({"mix": []}, "dataset.use: required, but not set (r.yaml:1)"),
        (
            {"use": "a", "mix": ["b", "c"]},
            "dataset.use: there is a `mix` of datasets too, and only one of them can hold; make it one of the mix "
            "(r.yaml:1)",
        ),
        (
            {"mix": ["a", "b"], "options": {"x": 1}},
            "dataset.options: in a mix, options belong to the dataset they are of; write them under it (r.yaml:1)",
        ),
        (
            {"mix": [{"use": "a", "weight": 1}, "b"]},
            "dataset.mix.b: a dataset without a weight among some with one; give every one a weight, or none "
            "(r.yaml:1)",
        ),
        (
            {"mix": [{"use": "a", "weight": 0}]},
            "dataset.mix.a.weight: must be at least 1e-09, not 0: a smaller share comes to nothing in float32 "
            "(r.yaml:1)",
        ),
        ({"mix": [{"use": "a", "wieght": 1}]}, "dataset.mix.a.wieght: unknown key; did you mean 'weight'? (r.yaml:1)"),
        ({"mix": ["a", 3]}, "dataset.mix.1: must be a mapping of keys to values, not 3 (r.yaml:1)"),
        ({"mix": [{"name": "n"}]}, "dataset.mix.n.use: required, but not set (r.yaml:1)"),
        (
            {"mix": [{"use": "a", "name": "x y"}]},
            "dataset.mix.x y.name: 'x y' is no name for metrics; it needs letters, digits, '_' and '-' (r.yaml:1)",
        ),
        (
            {"mix": [{"use": "a", "name": "x"}, {"use": "b", "name": "x"}]},
            "dataset.mix.x.name: there is another dataset named 'x'; give each a `name` of its own (r.yaml:1)",
        ),
    ],
)
def test_what_is_wrong_with_a_mix_is_said_once(dataset: dict[str, Any], message: str) -> None:
    assert problems(**dataset) == [message]


def test_paths_of_a_mix_start_at_the_recipe() -> None:
    layer = layer_of_file(mix=["./a.jsonl", {"use": "./b.jsonl", "preprocess": "p.py:f", "system": "No file."}])
    assert layer.values["dataset"]["mix"] == [
        {"use": "/b/a.jsonl"},
        {"use": "/b/b.jsonl", "preprocess": "/b/p.py:f", "system": "No file."},
    ]


def test_the_last_one_named_stays_one_dataset_or_a_mix() -> None:
    one, several = layer_of_file(use="sums", options={"limit": 1}), layer_of_file(mix=["/a.jsonl", "/b.jsonl"])
    assert merge(one, several).values["dataset"] == several.values["dataset"]
    assert merge(several, one).values["dataset"] == one.values["dataset"]


def test_several_datasets_between_commas_are_a_mix() -> None:
    assert flags(dataset="/a.jsonl").values["dataset"] == {"use": "/a.jsonl"}
    assert flags(dataset="/a%2Cb.jsonl").values["dataset"] == {"use": "/a,b.jsonl"}
    layer = flags(dataset="/a.jsonl, countdown", dataset_weights="0.7,0.3")
    assert layer.values["dataset"]["mix"] == [{"use": "/a.jsonl", "weight": 0.7}, {"use": "countdown", "weight": 0.3}]
    assert layer.dotted_origins()["dataset.mix.countdown.weight"] == "--dataset-weights"


def test_weights_for_the_wrong_number_of_datasets_are_a_problem() -> None:
    [few] = flags(dataset="/a.jsonl,/b.jsonl", dataset_weights="1").problems
    assert str(few) == (
        "dataset.mix: 1 weights (1) for 2 datasets (a, b); give one weight a dataset, in the same order "
        "(--dataset-weights)"
    )
    [one] = flags(dataset="/a.jsonl", dataset_weights="1").problems
    assert str(one) == "dataset.mix: weights (1) are for several datasets, and there is one (--dataset-weights)"


def test_a_single_setting_of_a_dataset_is_reached_by_its_name() -> None:
    layer = flags(dataset="/a.jsonl,/b.jsonl", set_=["dataset.mix.b.columns.gold=solution", "dataset.mix.a.weight=2"])
    assert layer.values["dataset"]["mix"] == [
        {"use": "/a.jsonl", "weight": 2},
        {"use": "/b.jsonl", "columns": {"gold": "solution"}},
    ]
    assert layer.dotted_origins()["dataset.mix.b.columns.gold"] == "--set"
    [problem] = flags(dataset="/a.jsonl,/b.jsonl", set_=["dataset.mix.c.weight=2"]).problems
    assert str(problem) == "dataset.mix.c.weight: no dataset of this recipe is named 'c'; it has: a, b (--set)"


def test_every_value_of_a_mix_is_explained_with_its_origin() -> None:
    recipe = recipe_of(dataset={"mix": [{"use": "sums", "weight": 2}, {"use": "/a.jsonl", "weight": 1}]})
    plan = resolve(recipe, {"dataset.mix.sums.weight": "--dataset-weights"}, host=fake_host())
    told = {each.path: (each.value, each.origin) for each in explain(plan)}
    assert told["dataset.mix.sums.weight"] == (2.0, "--dataset-weights")
    assert told["dataset.mix.sums.options.max_characters"] == (200, "default")
    assert told["dataset.mix.a.use"] == ("/a.jsonl", "default")


def test_the_texts_of_a_mix_become_part_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Think first.")
    recipe = recipe_of(dataset={"mix": [{"use": "sums", "system": f"{tmp_path}/s.txt"}]})
    plan = resolve(recipe, {}, host=fake_host())
    assert plan.recipe.dataset.mix[0].system == plan.datasets[0].system == "Think first."
