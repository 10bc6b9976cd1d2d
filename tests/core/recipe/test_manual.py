from pydantic import BaseModel

from grpo_core.recipe.manual import Setting, settings, settings_tables
from grpo_core.recipe.schema import Recipe


def _by_path() -> dict[str, Setting]:
    return {setting.path: setting for setting in settings()}


def test_every_setting_has_a_meaning_and_a_type_in_words() -> None:
    for setting in settings():
        assert setting.meaning.endswith("."), setting
        assert not set("[<{") & set(setting.type.replace("(<", "").replace(", <", "")), setting


def test_every_field_of_the_schema_is_there() -> None:
    def count(model: type[BaseModel]) -> int:
        return len(model.model_fields)

    sections = {path.split(".")[0] for path in _by_path()}
    assert sections == set(Recipe.model_fields)
    assert len([path for path in _by_path() if path.startswith("rollout.")]) == count(
        type(Recipe.model_fields["rollout"].get_default(call_default_factory=True))
    )


def test_types_bounds_choices_and_defaults_are_told() -> None:
    told = _by_path()
    assert told["trainer.learning_rate"].type == "number (≥ 1e-12, ≤ 100)"
    assert told["trainer.learning_rate"].default == "`1e-06`"
    assert told["rollout.min_p"].type == "number (≥ 0, < 1)"
    assert told["run.steps"].type == "whole number (≥ 1, ≤ 1,000,000,000) or null"
    assert told["advantage.scale"].type == "`std`, `none`, `batch`"
    assert told["rewards.NAME.tasks"].type == "list: text or null"
    assert told["rewards.NAME.use"].default == "required"
    assert told["evaluation.pass_at"].type == "list: whole number (≥ 1, ≤ 1,000,000)"
    assert told["dataset.columns"].type == "mapping: text → text"
    assert told["objective.importance.cap"].default == "`2.0`"


def test_the_tables_have_one_row_a_setting() -> None:
    text = settings_tables()
    assert text.count("\n| `") == len(_by_path())
    assert "### `rollout`" in text
    assert text.endswith("|\n")
