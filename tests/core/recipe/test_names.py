"""A plugin that is installed later changes nothing for recipes, defaults and runs that were there before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import RecipeError
from grpo_core.plugins.catalog import Catalog
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.namespace import Namespace
from grpo_core.plugins.specs import TrackerSpec
from grpo_core.plugins.verdicts import Admitted
from grpo_core.recipe.layers import Layer, NamespacedOrigin, make_layer, merge
from grpo_core.recipe.meanings import meanings
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import resolve
from grpo_core.recipe.syntax import all_paths
from grpo_core.recipe.validate import validate
from tests.core.recipe.fakes import HERE, SPECS

NAMESPACE = Namespace((frozenset({"grpo-recipes"}), frozenset({"acme"}), frozenset({"grpo-core"})))
TRACKER = TrackerSpec(name="curves", summary="", target=f"{HERE}:make")
EVERYTHING: dict[str, Any] = {
    "model": "m",
    "dataset": {"use": "sums", "evaluation": "sums"},
    "rewards": ["brevity", {"use": "timed"}],
    "rollout": {"use": "transformers"},
    "trainer": {"use": "torch"},
    "run": {"report_to": ["curves"]},
}


def host(*more: str) -> PluginHost:
    """`acme`, and further plugins that register all the same names."""
    plugins = [Admitted(distribution=name, version="1", specs=(*SPECS, TRACKER)) for name in ("acme", *more)]
    catalog = Catalog(plugins)
    return PluginHost(admitted=tuple(plugins), quarantined=(), blocked=(), warnings=(), catalog=catalog)


def layer(namespace: Namespace | None, **values: Any) -> Layer:
    origin = "mine.yaml:1" if namespace is None else NamespacedOrigin("shipped.yaml:1", namespace)
    return make_layer(values, dict.fromkeys(all_paths(values), origin), base=Path("/b"))


def planned(settings: Layer, *more: str) -> LaunchPlan:
    namespaces = settings.dotted_namespaces()
    return resolve(validate(settings), settings.dotted_origins(), host=host(*more), namespaces=namespaces)


def named(plan: LaunchPlan) -> list[str]:
    """The qualified name of every component."""
    rows = [*plan.datasets, *filter(None, [plan.evaluation])]
    makers = [each.preprocess for each in rows if each.preprocess]
    return [
        each.name
        for each in (*(r.component for r in plan.rewards), plan.rollout, plan.trainer, *plan.trackers, *makers)
    ]


def test_every_name_of_a_shipped_recipe_keeps_its_meaning_beside_a_plugin_with_the_same_names() -> None:
    settings = layer(NAMESPACE, **EVERYTHING)
    assert named(planned(settings, "newcomer")) == named(planned(settings))
    assert all(name.startswith("acme/") for name in named(planned(settings, "newcomer")))


def test_in_a_users_own_recipe_every_such_name_is_an_error_that_shows_both() -> None:
    with pytest.raises(RecipeError) as caught:
        planned(layer(None, **EVERYTHING), "newcomer")
    assert [problem.path for problem in caught.value.problems] == [
        "dataset.use",
        "dataset.evaluation",
        "rewards.brevity.use",
        "rewards.timed.use",
        "rollout.use",
        "trainer.use",
        "run.report_to",
    ]
    for problem in caught.value.problems:
        assert "Write acme/" in problem.message
        assert " or newcomer/" in problem.message


def test_what_a_user_writes_over_a_shipped_recipe_is_the_users() -> None:
    settings = merge(layer(NAMESPACE, **EVERYTHING), layer(None, trainer={"use": "torch"}, run={"steps": 3}))
    with pytest.raises(RecipeError) as caught:
        planned(settings, "newcomer")
    assert [problem.path for problem in caught.value.problems] == ["trainer.use"]
    settings = merge(layer(NAMESPACE, **EVERYTHING), layer(None, trainer={"use": "newcomer/torch"}))
    assert planned(settings, "newcomer").trainer.name == "newcomer/torch"


MIX = [{"use": "sums", "name": "a"}, {"use": "rows.jsonl", "preprocess": "shapes"}, "hf:acme/shapes"]


def test_datasets_of_a_mix_and_their_preprocessors_keep_their_meaning_too() -> None:
    settings = layer(NAMESPACE, **{**EVERYTHING, "dataset": {"mix": MIX}})
    plan = planned(settings, "newcomer")
    assert [each.preprocess.name for each in plan.datasets if each.preprocess] == ["acme/sums", *["acme/shapes"] * 2]
    shared = layer(NAMESPACE, **{**EVERYTHING, "dataset": {"mix": ["a.jsonl", "b.jsonl"], "preprocess": "shapes"}})
    plan = planned(shared, "newcomer")
    assert [each.preprocess.name for each in plan.datasets if each.preprocess] == ["acme/shapes"] * 2


def test_a_plugin_that_comes_later_does_not_make_samples_of_a_shipped_recipes_hub_rows() -> None:
    namespace = Namespace((frozenset({"grpo-recipes"}), frozenset(), frozenset({"grpo-core"})))
    settings = layer(namespace, **{**EVERYTHING, "dataset": "hf:acme/shapes"})
    assert planned(settings).datasets[0].preprocess is None
    assert planned(layer(None, **{**EVERYTHING, "dataset": "hf:acme/shapes"})).datasets[0].preprocess is not None


def test_backends_that_nobody_named_are_cores_own() -> None:
    settings = layer(None, model="m", dataset="acme/sums", rewards=["acme/brevity"])
    core = Admitted(distribution="grpo-core", version="1", specs=SPECS)
    both = host("newcomer")
    catalog = Catalog((*both.admitted, core))
    plan = resolve(validate(settings), settings.dotted_origins(), host=replace(both, catalog=catalog))
    assert (plan.rollout.name, plan.trainer.name) == ("grpo-core/transformers", "grpo-core/torch")


@pytest.mark.parametrize("dataset", [EVERYTHING["dataset"], {"mix": MIX}, "hf:acme/shapes", "rows.jsonl"])
def test_a_run_that_is_resolved_anew_means_what_it_meant(dataset: Any) -> None:
    plan = planned(layer(None, **{**EVERYTHING, "dataset": dataset}))
    origins = {path: NamespacedOrigin("the run", namespace) for path, namespace in meanings(plan).items()}
    values = plan.recipe.model_dump(mode="json", exclude_defaults=True)
    again = planned(make_layer(values, origins, base=Path()), "newcomer", "another")
    assert named(again) == named(plan)


def test_a_run_whose_hub_rows_nobody_understood_keeps_it_so() -> None:
    plan = planned(layer(None, **{**EVERYTHING, "dataset": "hf:acme/other"}))
    assert plan.datasets[0].preprocess is None
    assert meanings(plan)["dataset", "use"] == Namespace((frozenset(),))
