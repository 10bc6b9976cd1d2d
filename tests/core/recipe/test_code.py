from __future__ import annotations

import json
from pathlib import Path

import pytest

from grpo_core.errors import RecipeError
from grpo_core.plugins.host import PluginHost
from grpo_core.recipe.code import bring_in_code, code_of_model, code_of_plan
from grpo_core.recipe.plan import LaunchPlan, PlannedComponent, PlannedObserver
from grpo_core.recipe.resolve import resolve
from grpo_core.recipe.schema import ModelSettings
from tests.core.recipe.fakes import fake_host, recipe_of


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text("print('it runs')\ndef near(completions): return [1.0]\ndef make(row): return None\n")
    return path


def _plan(mine: Path, **settings: object) -> LaunchPlan:
    recipe = recipe_of(rewards=[f"{mine}:near"], **settings)
    return resolve(recipe, {"rewards.near.use": "r.yaml:4", "dataset": "--dataset"}, host=fake_host())


def test_code_is_listed_with_its_use_and_who_set_it_before_it_runs(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = _plan(mine, dataset={"use": "./rows.jsonl", "preprocess": f"{mine}:make"})
    bring_in_code(plan, plan.origins)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"code: {mine}: reward near, the preprocessor of the dataset (r.yaml:4, --dataset)"
    assert lines[1].startswith("code: tests.core.recipe.fakes (")  # the backends here are of no installed plugin
    assert lines[1].endswith("fakes.py): the rollout backend, the trainer backend")
    assert lines[2:] == ["it runs"]


def test_who_set_it_is_the_plan_where_nothing_else_is_known(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bring_in_code(_plan(mine), {}, otherwise="runs/a/plan.json")
    assert capsys.readouterr().out.startswith(f"code: {mine}: reward near (runs/a/plan.json)\n")


def test_every_target_of_a_plan_is_listed_whatever_it_says_of_its_distribution(mine: Path) -> None:
    plan = _plan(mine, dataset="./rows.jsonl")
    false = {"distribution": "grpo-core", "version": "0.1.0"}
    [dataset], [reward] = plan.datasets, plan.rewards
    component = PlannedComponent(name="grpo-core/x", target="os:system", options_model=f"{mine}:near", **false)
    foreign = plan.model_copy(
        update={
            "rewards": (reward.model_copy(update={"component": component}),),
            "datasets": (dataset.model_copy(update={"source": "subprocess:run", "preprocess": component}),),
            "rollout": component,
            "trainer": component,
            "trackers": (component,),
            "observers": (PlannedObserver(distribution="grpo-core", version="0", module=str(mine)),),
        }
    )
    found = {(each.place.partition(" (")[0], each.use) for each in code_of_plan(foreign)}
    uses = ("reward near", "the preprocessor of the dataset", "the rollout backend", "the trainer backend")
    tracker = "tracker grpo-core/x"
    assert found == {
        *((place, use) for use in (*uses, tracker) for place in ("os", str(mine))),
        ("subprocess", "the rows of the dataset"),
        (str(mine), "an observer"),
    }


def test_the_code_of_installed_plugins_is_not_listed() -> None:
    recipe = recipe_of(rewards=["format_reward"], dataset="./rows.jsonl")
    assert code_of_plan(resolve(recipe, {}, host=PluginHost.load())) == []


def test_all_code_that_cannot_be_imported_is_told_at_once_with_who_named_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f"import nothing_of_this_name\ndef {name}(): pass\n", encoding="utf-8")
    recipe = recipe_of(rewards=[f"{tmp_path}/one.py:one", f"{tmp_path}/two.py:two"])
    plan = resolve(recipe, {"rewards": "--rewards"}, host=fake_host())
    with pytest.raises(RecipeError) as caught:
        bring_in_code(plan, plan.origins)
    assert caught.value.exit_code == 3
    for problem, name in zip(caught.value.problems, ("one", "two"), strict=True):
        assert problem.path == f"rewards.{name}.use"
        assert problem.origin == "--rewards"
        assert "cannot be imported: ModuleNotFoundError: No module named 'nothing_of_this_name'" in problem.message


def test_a_model_that_may_run_its_own_code_is_listed_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "modeling_x.py").touch()
    mapped = {"AutoConfig": "configuration_x.X", "AutoModelForCausalLM": "owner/other--modeling_y.Y"}
    (tmp_path / "config.json").write_text(json.dumps({"auto_map": mapped}), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": [null, "a/b--t.T"]}}')
    [folder] = code_of_model(ModelSettings(path=str(tmp_path), trust_remote_code=True))
    assert folder.place == f"the Python files of {tmp_path} (modeling_x.py), and those of a/b, owner/other on the hub"
    hub, other = code_of_model(ModelSettings(path="owner/name", tokenizer="owner/tok", trust_remote_code=True))
    assert (hub.place, other.place) == (
        "whatever Python files 'owner/name' has on the hub",
        "whatever Python files 'owner/tok' has on the hub",
    )
    assert code_of_model(ModelSettings(path=str(tmp_path))) == []


def test_what_options_name_to_be_run_is_listed() -> None:
    reward = {"use": "code_reward", "options": {"executor": {"interpreter": "/other/python"}}}
    plan = resolve(recipe_of(rewards=[reward], dataset="./rows.jsonl"), {}, host=PluginHost.load())
    [found] = code_of_plan(plan)
    assert (found.place, found.use, found.path) == (
        "/other/python",
        "reward code_reward",
        "rewards.code_reward.options",
    )
