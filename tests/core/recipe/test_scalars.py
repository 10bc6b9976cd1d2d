from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, Field, field_validator

from grpo_core.recipe.scalars import misread, misread_kind


class Inner(BaseModel):
    strict: bool | None = None


class Options(BaseModel):
    flag: bool = False
    count: Annotated[int, Field(ge=1)] | None = None
    share: float = 0.5
    either: float | Literal["auto"] = "auto"
    counts: tuple[int, ...] | None = ()
    table: dict[str, bool] = Field(default_factory=dict)
    inner: Inner = Inner()
    many: list[Inner] = []
    named: int = Field(default=0, alias="as")
    seconds: Annotated[float, BeforeValidator(lambda value: str(value).removesuffix("s"))] = 1.0
    size: int = 0

    @field_validator("size", mode="before")
    @classmethod
    def _megabytes(cls, value: object) -> object:
        return str(value).removesuffix("MB")


def _found(values: dict[str, Any]) -> dict[tuple[int | str, ...], str]:
    return {each["loc"]: str(getattr(each["type"], "type", "")) for each in misread(Options, values)}


@pytest.mark.parametrize(
    ("values", "path", "kind"),
    [
        ({"flag": "t"}, ("flag",), "bool_type"),
        ({"flag": "true"}, ("flag",), "bool_type"),
        ({"flag": 1}, ("flag",), "bool_type"),
        ({"count": "3"}, ("count",), "int_type"),
        ({"share": True}, ("share",), "float_type"),
        ({"counts": [1, "2"]}, ("counts", 1), "int_type"),
        ({"table": {"a": "yes"}}, ("table", "a"), "bool_type"),
        ({"inner": {"strict": "off"}}, ("inner", "strict"), "bool_type"),
        ({"many": [{}, {"strict": 0}]}, ("many", 1, "strict"), "bool_type"),
        ({"as": "1"}, ("as",), "int_type"),
    ],
)
def test_a_scalar_of_another_kind_is_found_wherever_it_is(
    values: dict[str, Any], path: tuple[int | str, ...], kind: str
) -> None:
    assert _found(values) == {path: kind}


@pytest.mark.parametrize(
    "values",
    [
        {"flag": True, "count": 3, "share": 1, "counts": [1], "table": {"a": True}, "inner": {"strict": None}},
        {"count": None, "counts": None, "either": "auto"},
        {"seconds": "5s", "size": "3MB"},
        {"flag": [], "inner": 3, "counts": 7, "unknown": "x"},
    ],
)
def test_what_is_right_or_wrong_in_another_way_is_left_to_pydantic(values: dict[str, Any]) -> None:
    assert _found(values) == {}


@given(st.text() | st.integers() | st.floats())
def test_nothing_but_true_and_false_is_a_truth_value(value: object) -> None:
    assert misread_kind(bool, value) == "bool_type"
    assert misread_kind(bool | None, True) is None
