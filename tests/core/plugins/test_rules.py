from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grpo_core.plugins.rules import HEALTH, OBSERVERS, REGISTRATION, RuleError, check_hooks, check_spec, check_unique
from grpo_core.plugins.specs import DatasetSpec, RecipeSpec, RewardSpec, RolloutSpec, TrainerSpec
from grpo_core.plugins.targets import load_module
from tests.core.plugins.installed import write_plugin

REWARD = RewardSpec(name="good", summary="A reward", target="acme.rewards:good")
DATASET = DatasetSpec(name="sums", summary="A dataset", target="acme.sums:to_sample")
ROLLOUT = RolloutSpec(name="engine", summary="An engine", target="acme.rollout:make")
TRAINER = TrainerSpec(name="engine", summary="An engine", target="acme.trainer:make")
RECIPE = RecipeSpec(name="acme-1.5b", summary="A recipe", package="acme.data", path="recipes/small.yaml")
HOOK_OF = {kind: hook for hook, kind in REGISTRATION.items()}


def check_source(folder: Path, source: str) -> tuple[str, ...]:
    head = "from grpo_core.api import hookimpl\n"
    return check_hooks(load_module(str(write_plugin(folder, head + source, name="acme.py"))))


def test_the_hooks_of_a_module_are_given_in_its_order(tmp_path: Path) -> None:
    source = (
        "@hookimpl\ndef grpo_run_finished(outcome): ...\n@hookimpl\ndef grpo_recipes(): ...\ndef _grpo_private(): ..."
    )
    assert check_source(tmp_path, source) == ("grpo_run_finished", "grpo_recipes")


def test_an_observer_takes_only_the_arguments_it_wants(tmp_path: Path) -> None:
    assert check_source(tmp_path, "@hookimpl\ndef grpo_step_finished(): ...") == ("grpo_step_finished",)


@pytest.mark.parametrize(
    ("source", "reason", "hint"),
    [
        (
            "@hookimpl\ndef grpo_reward_function(): ...",
            "'grpo_reward_function' is not a hook",
            "'grpo_reward_functions'?",
        ),
        ("def grpo_recipe(): ...", "'grpo_recipe' is not a hook", "Did you mean 'grpo_recipes'?"),
        ("@hookimpl\ndef gpro_recipes(): ...", "'gpro_recipes' is not a hook", "Did you mean 'grpo_recipes'?"),
        ("def grpo_zzz(): ...", "'grpo_zzz' is not a hook", "Other names must not begin with 'grpo_'"),
        ("def grpo_recipes(): ...", "grpo_recipes is not marked as a hook", "Put @hookimpl above it."),
        ("class grpo_recipes: ...", "not a function", "Write it as a plain function."),
        ("@hookimpl(wrapper=True)\ndef grpo_recipes(): yield", "is a wrapper", None),
        ("@hookimpl(hookwrapper=True)\ndef grpo_recipes(): yield", "is a wrapper", None),
        (
            "@hookimpl(specname='grpo_recipes')\ndef grpo_run_started(): ...",
            "goes by another name",
            "Remove `specname`",
        ),
        ("@hookimpl\nasync def grpo_recipes(): ...", "is async", "plain function"),
        ("@hookimpl\nasync def grpo_recipes(): yield", "is async", "plain function"),
        ("@hookimpl\ndef grpo_recipes(host): ...", "has an unknown argument 'host'", "It is given no arguments."),
        ("@hookimpl\ndef grpo_step_finished(step): ...", "has an unknown argument 'step'", "It is given: report."),
        ("@hookimpl\ndef grpo_step_finished(*all): ...", "has an unknown argument 'all'", "It is given: report."),
        (
            "@hookimpl\ndef grpo_step_finished(report=None): ...",
            "has a default for 'report', and would never be given the real value",
            "Remove the default.",
        ),
    ],
)
def test_a_hook_that_would_be_ignored_or_misread_is_refused_with_its_place(
    tmp_path: Path, source: str, reason: str, hint: str | None
) -> None:
    with pytest.raises(RuleError) as caught:
        check_source(tmp_path, source)
    assert reason in caught.value.reason
    assert hint is None or hint in (caught.value.hint or "")
    assert caught.value.where == ("acme.py:2" if not source.startswith("class") else None)


def test_a_module_without_a_hook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="it implements no hook") as caught:
        check_source(tmp_path, "")
    assert caught.value.where == "acme.py"


def test_every_hook_is_for_registration_for_watching_or_for_the_doctor() -> None:
    from grpo_core.plugins import hookspecs

    assert {*REGISTRATION, *OBSERVERS, HEALTH} == {name for name in vars(hookspecs) if name.startswith("grpo_")}


@pytest.mark.parametrize("spec", [REWARD, DATASET, ROLLOUT, TRAINER, RECIPE], ids=lambda spec: str(spec.kind))
def test_a_well_formed_spec_passes_its_own_hook_and_no_other(spec: Any) -> None:
    for kind, hook in HOOK_OF.items():
        if isinstance(spec, kind):
            assert check_spec(spec, hook) is spec
        else:
            with pytest.raises(RuleError, match=rf"{hook} gave .*, not a {kind.__name__}"):
                check_spec(spec, hook)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (replace(REWARD, name="Good"), r"RewardSpec 'Good': name is 'Good', not \[a-z\]"),
        (replace(REWARD, name="good-one"), "name is 'good-one'"),
        (replace(REWARD, name=""), "name is ''"),
        (replace(REWARD, name=None), "name is None"),
        (replace(REWARD, summary=" "), "summary is ' ', not one line of text"),
        (replace(REWARD, summary="two\nlines"), "summary is .*, not one line of text"),
        (replace(REWARD, target="acme.rewards.good"), "target is 'acme.rewards.good', not pkg.mod:attr"),
        (replace(REWARD, target=print), "target is <built-in function print>, not pkg.mod:attr"),
        (replace(REWARD, options="acme.options"), "options is 'acme.options', not pkg.mod:Model"),
        (replace(REWARD, aliases=("Good",)), "aliases is 'Good'"),
        (replace(REWARD, aliases=["great"]), r"aliases is \['great'\], not a tuple of text"),
        (replace(REWARD, requires=("vllm>",)), "requires is 'vllm>', not a requirement"),
        (replace(REWARD, requires=("vllm | | x",)), "requires is .*, not a requirement"),
        (replace(REWARD, scope="batch"), "scope is 'batch', not sample or group or step"),
        (replace(REWARD, runs_in="thread"), "runs_in is 'thread', not main or worker"),
        (replace(REWARD, runs_in="worker", budget_s=0), "budget_s is 0, not a number of seconds above 0"),
        (replace(REWARD, runs_in="worker", budget_s=float("inf")), "budget_s is inf"),
        (replace(REWARD, runs_in="worker", budget_s=True), "budget_s is True"),
        (replace(REWARD, deadline_s=-1.0), "deadline_s is -1.0, not a number of seconds above 0"),
        (replace(REWARD, pure="yes"), "pure is 'yes', not True or False"),
        (replace(REWARD, verifies=1), "verifies is 1, not True or False"),
        (replace(DATASET, source="rows"), "source is 'rows', not pkg.mod:attr"),
        (replace(DATASET, hub_ids=("a/b", 3)), r"hub_ids is \('a/b', 3\), not a tuple of text"),
        (replace(ROLLOUT, capabilities={"lora"}), r"capabilities is \{'lora'\}, not a frozenset of text"),
        (replace(TRAINER, capabilities="lora"), "capabilities is 'lora', not a frozenset of text"),
        (replace(RECIPE, name="Acme"), r"name is 'Acme', not \[a-z\]"),
        (replace(RECIPE, package="acme/data"), "package is 'acme/data', not the name of a package"),
        (replace(RECIPE, package=None), "package is None"),
        (replace(RECIPE, path="/recipes/a.yaml"), "path is '/recipes/a.yaml', not a file inside the package"),
        (replace(RECIPE, path="../a.yaml"), "path is '../a.yaml'"),
        (replace(RECIPE, path="a.txt"), "path is 'a.txt'"),
        (replace(RECIPE, path=3), "path is 3"),
    ],
)
def test_a_malformed_value_is_named_with_its_field(spec: Any, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        check_spec(spec, HOOK_OF[type(spec)])


def test_a_text_where_a_tuple_is_meant_gets_the_comma_it_lacks() -> None:
    with pytest.raises(RuleError, match="aliases is 'great', not a tuple of text") as caught:
        check_spec(replace(REWARD, aliases="great"), "grpo_reward_functions")  # type: ignore[arg-type]
    assert caught.value.hint == "Write ('great',)."


def test_a_budget_needs_a_worker_which_can_be_stopped() -> None:
    with pytest.raises(RuleError, match=r"budget_s=2.0, but runs in the main process") as caught:
        check_spec(replace(REWARD, budget_s=2.0), "grpo_reward_functions")
    assert caught.value.hint == 'Add runs_in="worker".'
    worker = replace(REWARD, budget_s=2.0, runs_in="worker")
    assert check_spec(worker, "grpo_reward_functions") is worker


def test_names_and_aliases_are_unique_among_the_components_of_a_kind() -> None:
    check_unique([REWARD, replace(DATASET, name="good"), replace(REWARD, name="great")])
    with pytest.raises(RuleError, match="it registers the reward 'good' twice"):
        check_unique([REWARD, replace(REWARD, name="great", aliases=("good",))])
