"""What stands in for pytest in a sandbox does what pytest does, as far as tests use it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from grpo_rewards_code.executor.values import Opaque
from grpo_rewards_code.script.inside.pytest_names import as_module

names = as_module()


@pytest.mark.parametrize(
    ("actual", "expected", "close", "right"),
    [
        (1.625, 1.5, {"abs": 0.125}, True),
        (1.626, 1.5, {"abs": 0.125}, False),
        ([1.0, 2.0], [1.0, 2.0000001], {"abs": 1e-6}, True),
        ([1.0], [1.0, 2.0], {"abs": 1e-6}, False),
        ({"a": 1.0}, {"a": 1.0000001}, {"rel": 1e-6}, True),
        ({"b": 1.0}, {"a": 1.0}, {"rel": 1e-6}, False),
        (math.nan, 1.5, {"abs": 1e9}, False),
        (math.inf, 1.5, {"abs": 1e9}, False),
        ("1.5", 1.5, {"abs": 1e9}, False),
        (Opaque("Any"), 1.5, {"abs": 1e9}, False),
        (None, 1.5, {"abs": 1e9}, False),
        (10**400, 1.5, {"abs": 1e9}, False),
        (10**400, 4, {"abs": 1e9}, False),
        (complex(1.7e308, 1.7e308), 1.5, {"rel": 0.1}, False),
        (111.0, 100.0, {"rel": 0.1}, False),
        (Fraction(3, 2), 1.5, {}, True),
        (Decimal("1.5000001"), 1.5, {}, True),
        (Decimal("1.6"), Fraction(3, 2), {}, False),
        (Decimal("NaN"), 1.5, {}, False),
        (Fraction(10**400), Decimal("1.5"), {}, False),
    ],
)
def test_a_number_is_as_close_as_the_test_says(
    actual: object, expected: object, close: dict[str, float], right: bool
) -> None:
    assert (actual == names.approx(expected, **close)) is right


def test_an_exception_is_expected_by_its_class_and_words() -> None:
    with names.raises(LookupError, match="2") as caught:
        raise KeyError(2)
    assert (caught.type, caught.value.args) == (KeyError, (2,))
    assert names.raises(ValueError, int, "x").type is ValueError
    with pytest.raises(AssertionError, match="did not raise"), names.raises(ValueError):
        pass
    with pytest.raises(AssertionError, match="is not in"), names.raises(ValueError, match="other"):
        raise ValueError("one")
    with pytest.raises(KeyError), names.raises(ValueError):
        raise KeyError(1)
