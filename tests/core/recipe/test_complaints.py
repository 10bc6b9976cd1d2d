from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from grpo_core.recipe.complaints import complaints, did_you_mean, show_value
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.schema import Recipe


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    count: int = Field(default=1, ge=1, lt=9)
    share: float = Field(default=0.5, gt=0, le=1)
    choice: Literal["left", "right"] = "left"
    either: int | list[str] = 0
    names: tuple[str, ...] = ()
    table: dict[str, str] = Field(default_factory=dict)
    flag: bool = False
    code: str = Field(default="aa", pattern="^a+$")
    some: list[int] = Field(default=[1], min_length=1)
    several: list[int] = Field(default=[1, 2], min_length=2)
    even: int = 0
    nothing: None = None

    @field_validator("even")
    @classmethod
    def _must_be_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    needed: str
    inner: Inner = Inner()


def _complain(values: dict[str, Any], model: type[BaseModel] = Outer, what: str = "key") -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(values)
    found = complaints(caught.value, values, model, describe=lambda path: (dotted(path), None), what=what)
    return {problem.path: problem.message for _, problem in found}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("count", "many", 'must be a whole number, not "many"'),
        ("count", 1.5, "must be a whole number, not 1.5"),
        ("count", 0, "must be at least 1, not 0"),
        ("count", 9, "must be less than 9, not 9"),
        ("share", 0, "must be more than 0, not 0"),
        ("share", 2, "must be at most 1, not 2"),
        ("share", [], "must be a number, not []"),
        ("share", float("nan"), "must be a finite number, not NaN"),
        ("choice", "lef", "must be one of left, right, not \"lef\"; did you mean 'left'?"),
        ("choice", 7, "must be one of left, right, not 7"),
        ("either", {}, "must be a whole number or must be a list, not {}"),
        ("names", "abc", 'must be a list, not "abc"'),
        ("table", [1], "must be a mapping of keys to values, not [1]"),
        ("flag", "maybe", 'must be true or false, not "maybe"'),
        ("code", "b", "string should match pattern '^a+$', not \"b\""),
        ("several", [1], "must have at least 2, not 1"),
        ("some", [], "is empty; give at least 1"),
        ("even", 3, "must be even"),
        ("nothing", 3, "must be null, not 3"),
        ("cuont", 3, "unknown key; did you mean 'count'?"),
        ("needed", 3, "unknown key; it belongs at the top"),
    ],
)
def test_messages_speak_of_values_and_what_is_allowed(key: str, value: object, message: str) -> None:
    assert _complain({"needed": "x", "inner": {key: value}}) == {f"inner.{key}": message}


def test_a_wrong_element_of_a_list_or_mapping_is_named() -> None:
    values = {"needed": "x", "inner": {"names": ["a", 1], "table": {"k.l": 2}}}
    assert _complain(values) == {
        "inner.names.1": "must be text, not 1",
        'inner.table."k.l"': "must be text, not 2",
    }


def test_a_missing_key_is_required() -> None:
    assert _complain({}) == {"needed": "required, but not set"}


def test_an_unknown_key_that_is_like_no_other_lists_the_known_ones() -> None:
    assert _complain({"needed": "x", "zzz": 1}, what="option") == {"zzz": "unknown option; known: needed, inner"}


def test_a_key_of_another_section_says_where_it_belongs() -> None:
    assert _complain({"needed": "x", "count": 1}) == {"count": "unknown key; it belongs under 'inner'"}
    values = {"model": "m", "dataset": "d", "rewards": ["a"], "rollout": {"learning_rate": 1}}
    assert _complain(values, Recipe) == {"rollout.learning_rate": "unknown key; it belongs under 'trainer'"}


def test_a_section_that_is_no_mapping_says_so() -> None:
    assert _complain({"needed": "x", "inner": 3}) == {"inner": "must be a mapping of keys to values, not 3"}


def test_a_recipe_takes_numbers_and_truth_values_only_as_what_they_are() -> None:
    run = {"steps": True, "epochs": False, "seed": "3", "prompts_per_step": "true"}
    trainer = {"gradient_checkpointing": "t", "learning_rate": "1e-6", "weight_decay": "none"}
    objective = {"mask_truncated": 1}
    values = {"model": "m", "dataset": "d", "rewards": ["a"], "run": run, "trainer": trainer, "objective": objective}
    assert _complain({**values, "evaluation": {"pass_at": [True, "2"]}}, Recipe) == {
        "run.steps": "must be a whole number, not true",
        "run.epochs": "must be a number, not false",
        "run.seed": 'must be a whole number, not "3"; write it without quotes',
        "run.prompts_per_step": 'must be a whole number, not "true"',
        "trainer.gradient_checkpointing": 'must be true or false, not "t"',
        "trainer.learning_rate": 'must be a number, not "1e-6"; write it without quotes',
        "trainer.weight_decay": 'must be a number, not "none"',
        "objective.mask_truncated": "must be true or false, not 1",
        "evaluation.pass_at.0": "must be a whole number, not true",
        "evaluation.pass_at.1": 'must be a whole number, not "2"; write it without quotes',
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", '"a"'),
        (None, "null"),
        ("ü", '"ü"'),
        (b"x", "b'x'"),
        ("\udcff", '"\\udcff"'),
        ("x" * 100, '"' + "x" * 78 + "…"),
    ],
)
def test_values_are_shown_on_one_short_line(value: object, shown: str) -> None:
    assert show_value(value) == shown


def test_nothing_known_is_said_too() -> None:
    assert did_you_mean("a", []) == "none is known here"


def test_a_number_of_more_digits_than_python_writes_is_shown_as_that() -> None:
    assert show_value(16**5000) == "a number of thousands of digits"
