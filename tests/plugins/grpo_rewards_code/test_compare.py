"""Texts and values against what is expected: what does not count, and that everything else does."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_rewards_code.compare import Tolerance, same_text, same_value
from grpo_rewards_code.executor.values import Opaque, decode, encode
from grpo_rewards_code.problem.types import Style

TOLERANCE = Tolerance()


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("7\n", "7"),
        ("7", "7\n"),
        ("7 \t\n\n\n", "7\n"),
        ("1\r\n2\r\n", "1\n2\n"),
        ("1\r2\r", "1\n2\n"),
        ("", "\n"),
        ("1  2   3\n", "1 2 3\n"),
        (" 1 2\n", "1 2\n"),
        ("0.33333333333333\n", "0.333333333333\n"),
        ("0.333333\n", "0.333333333333\n"),
        ("1e3\n", "1000.0\n"),
        ("2\n", "2.0\n"),
        ("nan\n", "nan\n"),
        ("a\n\nb", "a\n\nb"),
        ("10" + "0" * 6000, "10" + "0" * 6000),
    ],
)
def test_layout_at_the_end_and_the_digits_of_a_fraction_do_not_count(actual: str, expected: str) -> None:
    assert same_text(actual, expected, TOLERANCE)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("7\n8\n", "7\n"),
        ("7\n", "7\n8\n"),
        ("7 8 9 10", "7 8 9"),
        ("\n7", "7"),
        ("7", "\n7"),
        ("", "\n7"),
        ("a  b", "a b"),
        (" *\n***", "*\n***"),
        ("Yes", "YES"),
        ("0.34", "0.333333333333"),
        ("0.3333", "0.333333333333"),
        ("123456789012345679", "123456789012345678"),
        ("3.0", "3"),
        ("3.0000001", "3"),
        ("nan", "1.5"),
        ("inf", "1.5"),
        ("nan", "0.0"),
        ("1e400", "1.5"),
        ("0", "0.00001"),
        ("1_000.5", "1000.5"),
        ("0x10", "16"),
        ("٣.٥", "3.5"),
        ("1 2 x", "1 2 3"),
        ("x 1.5", "y 1.5"),
        ("7�", "7"),
    ],
)
def test_everything_else_counts(actual: str, expected: str) -> None:
    assert not same_text(actual, expected, TOLERANCE)


def test_lines_may_come_in_any_order_where_the_test_says_so() -> None:
    assert same_text("b\na\n", "a\nb\n", TOLERANCE, unordered=True)
    assert same_text("0.5000000001\n1\n", "1\n0.5\n", TOLERANCE, unordered=True)
    assert not same_text("a\na\n", "a\nb\n", TOLERANCE, unordered=True)
    assert not same_text("b\na\n", "a\nb\n", TOLERANCE)


@given(st.text(), st.text())
def test_a_text_equals_itself_and_a_longer_one_is_another(text: str, more: str) -> None:
    assert same_text(text, text, TOLERANCE)
    if more.strip():
        assert not same_text(f"{text.rstrip()}\n{more}", text, TOLERANCE)


@given(st.lists(st.integers()), st.integers(0, 20))
def test_one_wrong_number_is_found_among_many(numbers: list[int], place: int) -> None:
    wrong = [*numbers]
    wrong.insert(min(place, len(numbers)), 10**20)
    right = [*numbers]
    right.insert(min(place, len(numbers)), 10**20 + 1)
    assert not same_text(" ".join(map(str, wrong)), " ".join(map(str, right)), TOLERANCE)
    assert not same_value(wrong, right, TOLERANCE, style="json")


@pytest.mark.parametrize(
    ("actual", "expected", "style"),
    [
        (1.5000000000000002, 1.5, "json"),
        ((1, 2), [1, 2], "json"),
        ({3: 2, 5: 1}, {"3": 2, "5": 1}, "json"),
        ({True: 1}, {"true": 1}, "json"),
        ([(1, (2.0000000001,))], [[1, [2.0]]], "json"),
        (2, 2.0, "json"),
        (2.0, 2, "json"),
        (None, None, "json"),
        ({1, 2}, {2, 1}, "python"),
        ((1, 2), (1, 2), "python"),
        ({0.1 + 0.2}, {0.3}, "python"),
        (math.nan, math.nan, "json"),
        ([10**5000], [10**5000], "python"),
        (1j, 1j, "python"),
        (b"ab", b"ab", "python"),
    ],
)
def test_values_that_are_the_same(actual: object, expected: object, style: Style) -> None:
    assert same_value(actual, expected, TOLERANCE, style=style)


@pytest.mark.parametrize(
    ("actual", "expected", "style"),
    [
        ("True", True, "json"),
        ("1", 1, "json"),
        (None, 0, "json"),
        (None, False, "json"),
        (None, [], "json"),
        ("", None, "json"),
        ([1], 1, "json"),
        ([1, 2, 3], [1, 2], "json"),
        ({1, 2}, [1, 2], "json"),
        ((1, 2), [1, 2], "python"),
        ({"3": 1}, {3: 1}, "python"),
        (1.51, 1.5, "json"),
        (2.0000001, 2, "json"),
        (math.inf, 1.5, "json"),
        (math.nan, 1.5, "json"),
        (10**400, 1.5, "json"),
        ("1.5", 1.5, "json"),
        ({3: 1, "3": 1}, {"3": 1}, "json"),
        (123456789012345679, 123456789012345678, "json"),
        (Opaque("Yes"), 7, "json"),
        (Opaque("Yes"), "<Yes>", "json"),
        ([Opaque("Yes")], [7], "json"),
        (Opaque("Yes"), None, "python"),
        ({"a": Opaque("Yes")}, {"a": 1.5}, "json"),
    ],
)
def test_values_that_are_not(actual: object, expected: object, style: Style) -> None:
    assert not same_value(actual, expected, TOLERANCE, style=style)


@pytest.mark.parametrize("style", ["json", "python"])
@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (Decimal("0.5"), 0.5),
        (Fraction(1, 2), 0.5),
        (Fraction(4, 2), 2),
        (0.5, Fraction(1, 2)),
        (Decimal("0.1"), 0.1),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("NaN"), 0.5),
        (Decimal("0.5"), True),
        (Fraction(1, 2), "1/2"),
        (deque([1]), deque([1], 5)),
        (deque([1]), deque([2])),
        ([1], deque([1])),
        (deque([1]), [1]),
        ({"a": 1}, OrderedDict(a=1)),
        (OrderedDict(b=2, a=1), {"a": 1, "b": 2}),
        (OrderedDict(b=2, a=1), OrderedDict(a=1, b=2)),
        (OrderedDict(a=1, b=2), OrderedDict(a=1, b=2)),
        (Counter(a=1), {"a": 1}),
        (defaultdict(list, a=1), {"a": 1}),
    ],
)
def test_values_of_the_standard_library_equal_what_python_says(actual: object, expected: object, style: Style) -> None:
    assert same_value(decode(encode(actual)), expected, TOLERANCE, style=style) is (actual == expected)


def test_items_may_come_in_any_order_where_the_test_says_so() -> None:
    for actual in ([[2, 3], [1]], ([1], [2, 3]), [[1], [2, 3]]):
        assert same_value(actual, [[1], [2, 3]], TOLERANCE, style="json", unordered=True)
    assert same_value({1, 2}, [2, 1], TOLERANCE, style="json", unordered=True)
    assert not same_value([1, 1], [1, 2], TOLERANCE, style="json", unordered=True)
    assert not same_value([[3, 2]], [[2, 3]], TOLERANCE, style="json", unordered=True)
    assert not same_value([10**5000], [10**5000 + 1], TOLERANCE, style="json", unordered=True)


def _deep(levels: int, value: object) -> object:
    for _ in range(levels):
        value = [value]
    return value


NUMBERS = [number + 0.12345678 for number in range(3000)]
NEARLY = [number * (1 + 1e-10) for number in reversed(NUMBERS)]


@pytest.mark.parametrize(
    ("actual", "expected", "right"),
    [
        (NEARLY, NUMBERS, True),
        ([*NEARLY[:-1], 7.5], NUMBERS, False),
        ([NEARLY[0], *NEARLY[:-1]], NUMBERS, False),
        ([[0.5 + 1e-12 * (x % 7), x] for x in NEARLY], [[0.5, x] for x in NUMBERS], True),
        ([{"a": x} for x in NEARLY[:50]], [{"a": x} for x in reversed(NUMBERS[-50:])], True),
        ([math.nan, 10**400, "b", None, 0.1 + 0.2], [None, 0.3, "b", math.nan, 10**400], True),
        ([_deep(150, x) for x in NEARLY[:300]], [_deep(150, x + 1) for x in NUMBERS[:300]], False),
        ([_deep(150, [x] * 3) for x in NEARLY[:300]], [[x] for x in NUMBERS[:300]], False),
    ],
)
def test_long_lists_in_any_order_are_compared_in_time_near_to_their_length(
    actual: list[object], expected: list[object], right: bool
) -> None:
    began = time.process_time()
    assert same_value(actual, expected, TOLERANCE, style="json", unordered=True) is right
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("right", [True, False])
def test_long_texts_in_any_order_are_compared_in_time_near_to_their_length(right: bool) -> None:
    ours = "\n".join(f"0.50000000000{x:.0f} {x!r}" for x in NEARLY)
    theirs = "\n".join(f"0.5 {x + (not right)!r}" for x in NUMBERS)
    began = time.process_time()
    assert same_text(ours, theirs, TOLERANCE, unordered=True) is right
    assert time.process_time() - began < 5.0


@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.randoms())
def test_any_order_of_any_numbers_is_the_same(numbers: list[float], random: Any) -> None:
    shuffled = [number * (1 + random.uniform(-1e-8, 1e-8)) for number in numbers]
    random.shuffle(shuffled)
    assert same_value(shuffled, numbers, TOLERANCE, style="json", unordered=True)
    assert not same_value([*shuffled, 2e6], [*numbers, 3e6], TOLERANCE, style="json", unordered=True)


def test_values_nested_beyond_reason_are_not_the_same_and_no_error() -> None:
    deep: list[object] = []
    other: list[object] = [1]
    for _ in range(100_000):
        deep, other = [deep], [other]
    assert not same_value(deep, other, TOLERANCE, style="json")
