from grpo_core.recipe.explain import explain
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import resolve
from tests.core.recipe.fakes import fake_host, recipe_of


def test_every_value_has_an_origin() -> None:
    recipe = recipe_of(
        rewards=[{"use": "brevity", "weight": 2, "options": {"limit": 3}}],
        dataset={"use": "sums", "columns": {"a.b": "c"}},
        rollout={"stop": ["x"]},
    )
    origins = {
        "rewards.brevity.weight": "--reward-weights",
        "rewards.brevity.options.limit": "--set",
        "rollout.stop": "r.yaml:3",
        'dataset.columns."a.b"': "--columns",
    }
    told = {each.path: (each.value, each.origin) for each in explain(resolve(recipe, origins, host=fake_host()))}
    assert told["rewards.brevity.weight"] == (2.0, "--reward-weights")
    assert told["rewards.brevity.options.limit"] == (3.0, "--set")
    assert told["rewards.brevity.options.max_characters"] == (200, "default")
    assert told["rollout.stop"] == (["x"], "r.yaml:3")
    assert told['dataset.columns."a.b"'] == ("c", "--columns")
    assert told["dataset.options.max_characters"] == (200, "default")
    assert told["objective.importance.cap"] == (2.0, "default")
    assert told["trainer.options"] == ({}, "default")


def test_a_dataset_that_is_only_a_file_has_no_options() -> None:
    plan = resolve(recipe_of(dataset="/rows.jsonl"), {}, host=fake_host())
    assert {each.path: each.value for each in explain(plan)}["dataset.options"] == {}


def test_the_default_estimator_of_kl_is_the_one_that_fits_its_place() -> None:
    chosen = {"kl_in": "reward", "kl_estimator": "k3"}
    for objective, value in (({}, "k3"), ({"kl_in": "reward"}, "k1"), (chosen, "k3")):
        plan = resolve(recipe_of(objective=objective), {}, host=fake_host())
        told = {each.path: (each.value, each.origin) for each in explain(plan)}
        assert told["objective.kl_estimator"] == (value, "default")
        assert LaunchPlan.model_validate_json(plan.model_dump_json()).recipe.objective.kl_estimator == value
