from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import Problem, RecipeError
from grpo_core.plugins.host import PluginHost
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import plan_batch, resolve
from grpo_core.recipe.schema import Recipe
from grpo_core.recipe.validate import PLACEHOLDER
from tests.core.recipe.fakes import HERE, fake_host, recipe_of


def _problems(recipe: Recipe, origins: dict[str, str] | None = None, **more: Any) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        resolve(recipe, origins or {}, host=fake_host(), **more)
    return list(map(str, caught.value.problems))


def _resolved(**settings: Any) -> LaunchPlan:
    return resolve(recipe_of(**settings), {}, host=fake_host())


def test_everything_is_looked_up() -> None:
    plan = _resolved(rewards=["brevity", {"use": "timed", "weight": 0.5}])
    assert plan.datasets[0].reference == "acme/sums"
    assert plan.evaluation is None
    assert plan.rollout.name == "acme/transformers"
    assert plan.trainer.name == "acme/torch"
    assert plan.weights_route == "shared"
    assert [reward.name for reward in plan.rewards] == ["brevity", "timed"]
    assert plan.batch.completions_per_step == 64


def test_a_reward_takes_what_its_spec_says() -> None:
    [reward, timed] = _resolved(rewards=["short", "timed"]).rewards
    assert reward.name == "brevity"
    assert (reward.scope, reward.pure, reward.tasks, reward.verifies) == ("group", True, ("chat",), True)
    assert (reward.runs_in, reward.budget_s, reward.deadline_s) == ("main", None, 300.0)
    assert (timed.runs_in, timed.budget_s, timed.deadline_s) == ("worker", 2.5, 900.0)


def test_an_entry_may_say_otherwise() -> None:
    entry = {
        "use": "brevity",
        "name": "mine",
        "weight": 2,
        "tasks": [],
        "runs_in": "worker",
        "deadline_s": 9,
        "scope": "step",
    }
    [reward] = _resolved(rewards=[{**entry, "columns": {"answer": "solution"}}]).rewards
    assert (reward.name, reward.weight, reward.tasks, reward.runs_in) == ("mine", 2.0, (), "worker")
    assert (reward.deadline_s, reward.columns, reward.scope) == (9.0, {"answer": "solution"}, "step")


def test_a_function_in_a_file_is_a_reward(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def my_reward(completions):\n    return [0.0]\n")
    [reward] = _resolved(rewards=[f"{tmp_path}/mine.py:my_reward"]).rewards
    assert reward.name == "my_reward"
    assert reward.component.target == f"{tmp_path}/mine.py:my_reward"
    assert reward.component.distribution is None
    assert (reward.pure, reward.runs_in, reward.verifies) == (False, "main", False)
    assert reward.scope is None, "the function says it"


def test_every_problem_is_reported_with_the_origin_of_its_setting() -> None:
    recipe = recipe_of(
        dataset={"use": "smus", "evaluation": "homeless"},
        rewards=[{"use": "brevity", "options": {"limt": 1}}, {"use": "brevty"}, "./nowhere.py:f"],
        rollout="engine",
        trainer="trch",
        evaluation={"success": "brevity"},
    )
    origins = {"dataset.use": "--dataset", "rewards.brevity.options.limt": "--set", "trainer": "r.yaml:7"}
    found = _problems(recipe, origins, problems=[Problem(path="run", message="found before")])
    assert found[0] == "run: found before"
    starts = [
        "dataset.use: no plugin registers a dataset 'smus'. Did you mean 'sums'?",
        "dataset.evaluation: 'homeless' has no rows of its own.",
        "rewards.brevity.options.limt: unknown option; did you mean 'limit'? (--set)",
        "rewards.brevty.use: no plugin registers a reward 'brevty'. Did you mean 'brevity'?",
        "rewards.f.use: there is no file",
        "rollout.use: 'engine' needs no-such-engine>=2 | another, not installed here.",
        "trainer.use: no plugin registers a trainer 'trch'.",
    ]
    for start, text in zip(starts, found[1:], strict=True):
        assert text.startswith(start)
    assert found[1].endswith("(--dataset)")
    assert found[-1].endswith("(r.yaml:7)")


def test_placeholders_of_missing_values_are_not_looked_up() -> None:
    recipe = recipe_of(dataset=PLACEHOLDER, rewards=[PLACEHOLDER], model=PLACEHOLDER)
    before = Problem(path="dataset", message="required, but not set")
    assert _problems(recipe, problems=[before]) == ["dataset: required, but not set"]


def test_problems_found_before_are_enough_to_stop() -> None:
    assert _problems(recipe_of(), problems=[Problem(path="a", message="b")]) == ["a: b"]


def test_two_names_of_one_reward_clash() -> None:
    [problem] = _problems(recipe_of(rewards=["brevity", "short"]))
    assert problem == "rewards: brevity and short are both named 'brevity'; give one another `name`"


def test_a_time_limit_needs_a_worker() -> None:
    [problem] = _problems(recipe_of(rewards=[{"use": "timed", "runs_in": "main"}]))
    assert problem == "rewards.timed.runs_in: must be worker: only there its limit of 2.5 s can be kept"


def test_a_time_limit_of_an_answer_needs_the_scope_of_one() -> None:
    [problem] = _problems(recipe_of(rewards=[{"use": "timed", "scope": "group"}]))
    assert problem == "rewards.timed.scope: must be sample: its limit of 2.5 s is that of one answer"


def test_success_names_a_reward_of_the_run() -> None:
    assert _resolved(evaluation={"success": "brevity"}).recipe.evaluation.success == "brevity"
    [problem] = _problems(recipe_of(evaluation={"success": "brevty"}))
    assert problem == "evaluation.success: 'brevty' is no reward of this run; did you mean 'brevity'?"


def test_weights_stream_where_they_cannot_be_shared() -> None:
    assert _resolved(rollout="remote").weights_route == "stream"


def test_backends_need_a_way_for_the_weights() -> None:
    [problem] = _problems(recipe_of(rollout="remote", trainer="hidden"))
    assert problem == (
        "rollout.use: 'acme/hidden' gives its weights by weights:disk and 'acme/remote' takes them by weights:stream; "
        "choose two backends with a way in common"
    )


@pytest.mark.parametrize(
    ("dataset", "preprocess"),
    [
        ({"use": "sums", "evaluation": "rows.jsonl"}, "acme/sums"),
        ({"use": "sums", "evaluation": "hf:acme/shapes"}, "acme/shapes"),
        ({"use": "a.jsonl", "preprocess": "shapes", "evaluation": "b.jsonl"}, "acme/shapes"),
        ({"use": "a.jsonl", "preprocess": "shapes", "evaluation": "hf:acme/sums"}, "acme/shapes"),
        ({"use": "a.jsonl", "preprocess": "shapes", "evaluation": "sums"}, "acme/sums"),
    ],
)
def test_evaluation_rows_become_samples_as_training_rows_do_unless_they_have_their_own_way(
    dataset: dict[str, str], preprocess: str
) -> None:
    evaluation = _resolved(dataset=dataset).evaluation
    assert evaluation is not None
    assert evaluation.preprocess is not None
    assert evaluation.preprocess.name == preprocess


def test_texts_in_files_become_part_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Think first.")
    (tmp_path / "t.jinja").write_text("{{ messages }}")
    plan = _resolved(
        dataset={"use": "sums", "system": f"{tmp_path}/s.txt"},
        model={"path": "m", "chat_template": f"{tmp_path}/t.jinja"},
    )
    assert plan.recipe.dataset.system == "Think first."
    assert plan.recipe.model.chat_template == "{{ messages }}"


def test_a_text_file_that_is_gone_is_a_problem_of_its_setting() -> None:
    recipe = recipe_of(
        dataset={"use": "sums", "system": "./gone.txt"}, model={"path": "m", "chat_template": "./gone.j2"}
    )
    assert [text.partition(":")[0] for text in _problems(recipe)] == ["dataset.system", "model.chat_template"]


def test_observers_are_those_of_admitted_plugins() -> None:
    host: PluginHost = fake_host(observers=(f"{HERE}",))
    [observer] = resolve(recipe_of(), {}, host=host).observers
    assert (observer.distribution, observer.version, observer.module) == ("acme", "1.2", HERE)


def test_the_sizes_of_a_step_are_derived() -> None:
    recipe = recipe_of(
        run={"completions_per_step": 24},
        rollout={"completions_per_prompt": 4},
        trainer={"num_iterations": 2, "minibatches": 3},
    )
    batch = plan_batch(recipe)
    assert (batch.prompts_per_step, batch.completions_per_prompt) == (6, 4)
    assert (batch.completions_per_step, batch.updates_per_step) == (24, 6)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"rewards": ["brevty"]}, 3),
        ({"rewards": ["brevty"], "rollout": "engine", "trainer": "trch"}, 3),
        ({"rewards": ["brevty"], "dataset": "sums?x=1"}, 2),
        ({"dataset": "sums?x=1"}, 2),
    ],
)
def test_what_only_plugins_lack_ends_as_in_every_other_command(change: dict[str, Any], code: int) -> None:
    with pytest.raises(RecipeError) as caught:
        resolve(recipe_of(**change), {}, host=fake_host())
    assert caught.value.exit_code == code


def test_options_may_contradict_the_rest_of_the_recipe_when_it_is_planned() -> None:
    fits = {"use": "picky", "options": {"passes": 2}, "num_iterations": 2}
    assert _resolved(trainer=fits).trainer.options == {"passes": 2}
    problems = _problems(recipe_of(trainer={**fits, "num_iterations": 3}), {"trainer.options.passes": "recipe.yaml:9"})
    assert problems == ["trainer.options.passes: it is 2, and trainer.num_iterations says 3 (recipe.yaml:9)"]
