"""Every number that can be set has a range, here and in plugins: none is taken that breaks what computes with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo

from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.targets import load_target
from grpo_core.recipe.complaints import complaints
from grpo_core.recipe.ranges import bound_text
from grpo_core.recipe.schema import Recipe

KINDS = ("reward", "dataset", "rollout", "trainer", "tracker")
SPARED = {"ScoringSettings.workers", "ExecutorOptions.workers"}
"""Compared with the machine, where they are used."""


def numeric_fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Every field of a model and of those in it whose values are numbers."""
    for name, field in model.model_fields.items():
        kinds = set(inner_types(field.annotation))
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from numeric_fields(kind)
        if kinds & {int, float} and f"{model.__name__}.{name}" not in SPARED:
            yield f"{model.__name__}.{name}", field


def inner_types(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of; those of literals are none."""
    inner = [each for each in get_args(annotation) if isinstance(each, type) or get_args(each)]
    if not inner:
        yield annotation
    for each in inner:
        yield from inner_types(each)


def options_models() -> Iterator[type[BaseModel]]:
    """Those of every component that is installed."""
    catalog = PluginHost.load().catalog
    for kind in KINDS:
        for entry in catalog.entries(kind):  # type: ignore[arg-type]  # each is a kind
            target = getattr(entry.spec, "options", None)
            model = load_target(target) if target else None
            if isinstance(model, type) and issubclass(model, BaseModel):
                yield model


def takes(field: FieldInfo, value: object) -> bool:
    one = create_model("One", x=(field.annotation, field))  # type: ignore[call-overload]  # made of a field at hand
    try:
        one.model_validate({"x": value if "tuple" not in str(field.annotation) else [value]})
    except ValidationError:
        return False
    return True


FIELDS = dict(pair for model in {Recipe: None, **dict.fromkeys(options_models())} for pair in numeric_fields(model))


def test_the_fields_are_those_of_core_and_plugins() -> None:
    assert {"RunSettings.steps", "TransformersRolloutOptions.max_sequences", "EvaluationSettings.pass_at"} <= set(
        FIELDS
    )
    assert {"CountdownOptions.max_target", "CodeRewardOptions.timeout_s", "VllmRolloutOptions.wait_limit_s"} <= set(
        FIELDS
    )


@pytest.mark.parametrize("name", FIELDS)
def test_no_setting_takes_an_absurd_number(name: str) -> None:
    field = FIELDS[name]
    absurd: list[float] = [10**30, -(10**30), 2**63, 10**400]
    if float in set(inner_types(field.annotation)):
        absurd += [1e300, -1e300, float("inf"), float("nan")]
        bounds = [getattr(each, "ge", getattr(each, "gt", None)) for each in field.metadata]
        absurd += [1e-320] if any(bound is not None and bound > 0 for bound in bounds) else []
        assert 0.0 not in bounds or takes(field, 0), f"{name} may not be 0, and has no least value"
    assert [value for value in absurd if takes(field, value)] == []


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("run.steps", 10**20, "must be at most 1,000,000,000, not 100000000000000000000: at one a second"),
        (
            "run.seed",
            10**30,
            "must be at most 9,223,372,036,854,775,807, not 1000000000000000000000000000000: the random",
        ),
        ("trainer.learning_rate", 1e300, "must be at most 100, not 1e+300: AdamW moves a weight by about this"),
        ("trainer.learning_rate", 1e-320, "must be at least 1e-12, not 1e-320: AdamW moves a weight by about this"),
        ("trainer.lora.rank", 10**9, "must be at most 65,536, not 1000000000: no layer is as wide"),
        ("rollout.temperature", 1e-320, "must be at least 0.01, not 1e-320: below, the completions of a group are"),
        (
            "rollout.completions_per_prompt",
            10**9,
            "must be at most 1,000,000, not 1000000000: all of them are in memory",
        ),
        ("dataset.max_prompt_tokens", 10**12, "must be at most 1,000,000,000, not 1000000000000: no model reads"),
        ("run.wait_limit_s", 1e9, "must be at most 1,000,000, not 1000000000.0: the system waits in milliseconds"),
        ("objective.importance.cap", 1e300, "must be at most 1,000,000, not 1e+300: it is computed with in float32"),
    ],
)
def test_a_number_out_of_its_range_is_told_the_range_and_why(path: str, value: object, message: str) -> None:
    values: dict[str, Any] = {"model": "m", "dataset": "d", "rewards": ["r"]}
    section = values
    *outer, name = path.split(".")
    for key in outer:
        section[key] = {"use": "d"} if key == "dataset" else {}
        section = section[key]
    section[name] = value
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(values)
    [(_, problem)] = complaints(caught.value, values, Recipe, describe=lambda at: (".".join(map(str, at)), None))
    assert problem.message.startswith(message)


def test_bounds_are_written_for_people() -> None:
    assert [bound_text(bound) for bound in (1, 10**9, 1e6, -1e6, 0.001, 1e-12, 2**63 - 1)] == [
        *("1", "1,000,000,000", "1,000,000", "-1,000,000", "0.001", "1e-12", "9,223,372,036,854,775,807")
    ]
