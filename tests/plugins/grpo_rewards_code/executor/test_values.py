from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_rewards_code.executor.values import Opaque, TooLargeError, decode, encode

_PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
_KEYS = st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text()) | st.frozensets(st.integers())
_VALUES = st.recursive(
    _PLAIN,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(_KEYS, inner)
        | st.sets(_KEYS)
        | st.frozensets(_KEYS)
    ),
)


@given(_VALUES)
def test_plain_values_come_back_equal_and_of_the_same_type(value: object) -> None:
    found = decode(encode(value))
    assert found == value
    assert type(found) is type(value)


def test_special_values_come_back() -> None:
    assert math.isnan(decode(encode(math.nan)))
    assert decode(encode([math.inf, -math.inf])) == [math.inf, -math.inf]
    assert math.copysign(1, decode(encode(-0.0))) == -1
    assert decode(encode(10**20_000)) == 10**20_000
    assert decode(encode("\ud800")) == "\ud800"
    assert decode(encode(range(3, 9, 2))) == range(3, 9, 2)
    assert decode(encode(bytearray(b"ab"))) == b"ab"


class _Sly(list):  # type: ignore[type-arg]
    def __eq__(self, other: object) -> bool:
        return True

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(["whatever", "is", "wanted"])


class _SlyText(str):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "whatever is wanted"


class _SlyNumber(float):
    def __sub__(self, other: object) -> float:
        return 0.0

    __rsub__ = __sub__

    def __float__(self) -> float:
        return 99.0


def test_a_subclass_is_taken_for_the_data_it_holds_and_brings_no_method() -> None:
    for sly, plain in ((_Sly([1]), [1]), (_SlyText("no"), "no"), (_SlyNumber(1), 1.0)):
        found = decode(encode(sly))
        assert type(found) is type(plain)
        assert found == plain
    assert decode(encode(_Sly())) != [1]


def test_the_standard_library_s_subclasses_are_data_too() -> None:
    point = namedtuple("point", "x y")
    colour = IntEnum("colour", "RED GREEN")
    assert decode(encode(Counter("aab"))) == {"a": 2, "b": 1}
    assert decode(encode(defaultdict(list, {1: [2]}))) == {1: [2]}
    assert decode(encode(OrderedDict(a=1))) == {"a": 1}
    assert decode(encode(point(1, 2))) == (1, 2)
    assert decode(encode(colour.GREEN)) == 2


class _SlyDecimal(Decimal):
    def __eq__(self, other: object) -> bool:
        return True

    def __str__(self) -> str:
        return "99"

    __hash__ = Decimal.__hash__


class _SlyFraction(Fraction):
    numerator = 99  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = Fraction.__hash__


@pytest.mark.parametrize(
    "value",
    [
        *(Decimal("0.50"), Decimal("-1e99999"), Decimal("inf"), Fraction(1, 3), Fraction(-(10**300), 7)),
        *(deque([1, (2,)]), OrderedDict(b=1, a=2), deque(maxlen=3), [Decimal(1), {Fraction(2): deque()}]),
    ],
)
def test_what_equals_other_things_than_a_built_in_type_keeps_its_own(value: object) -> None:
    found = decode(encode(value))
    assert found == value
    assert type(found) is type(value)


@given(st.decimals(allow_nan=False) | st.fractions())
def test_exact_numbers_come_back(value: object) -> None:
    assert decode(encode(value)) == value


def test_exact_numbers_bring_no_method_and_nothing_that_raises_or_takes_long() -> None:
    for sly, plain in ((_SlyDecimal("0.5"), Decimal("0.5")), (_SlyFraction(1, 2), Fraction(1, 2))):
        found = decode(encode(sly))
        assert (type(found), found) == (type(plain), plain)
    long = (Decimal("sNaN"), Decimal("1" * 2000), Fraction(1, 10**5000))
    forged = ('["decimal", "SNAN"]', '["decimal", "-snan12"]', '["fraction", [1, ["int", "' + "f" * 5000 + '"]]]')
    for text in (*map(encode, long), *forged):
        assert isinstance(decode(text), Opaque)


def test_numbers_and_arrays_of_numpy_are_data() -> None:
    numpy = pytest.importorskip("numpy")
    assert decode(encode([numpy.int64(3), numpy.float32(0.5), numpy.array([[1, 2]])])) == [3, 0.5, [[1, 2]]]


def test_what_has_no_data_form_is_opaque_and_equal_to_nothing() -> None:
    found = decode(encode([object(), print, (x for x in "ab")]))
    assert [repr(each) for each in found] == ["<object>", "<builtin_function_or_method>", "<generator>"]
    assert found[0] != found[0]
    assert found != [object()] * 3
    assert {found[0]: 1}


def test_a_value_within_itself_ends() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert "nested too deeply" in encode(loop)


def test_a_value_that_is_too_large_is_refused_before_it_is_written() -> None:
    doubled: list[object] = ["x"]
    for _ in range(100):
        doubled = [doubled, doubled]
    for value in ("x" * 2000, [0] * 2000, 10**4000, b"x" * 2000, doubled, ["\ud800" * 300]):
        with pytest.raises(TooLargeError):
            encode(value, 1000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '["list"]',
        '["unknown", 1]',
        '["int", "zz"]',
        '["set", [["list", []]]]',
        '["dict", [[1]]]',
        '["float", 3]',
        '["range", [0, 1, 0]]',
        '["complex", []]',
        '["bytes", "x"]',
        '["decimal", "x"]',
        '["decimal", 5]',
        '["decimal", "1e9999999999999999999"]',
        '["fraction", [1, 0]]',
        '["fraction", [1.5, 2]]',
        '["fraction", ["1", 2]]',
        '["ordered", [[1]]]',
        '["deque", 5]',
        '["list", 5]',
        '[["list"], 5]',
        "1.5",
        "9" * 5000,
        '["list", [' * 100_000,
        '["float", "0x1p99999"]',
    ],
)
def test_text_that_is_no_value_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


def test_keys_made_to_collide_do_not_hang_who_reads_them() -> None:
    colliding = [number * (2**61 - 1) for number in range(1, 100_000)]
    members = ",".join(f'["int","{number:x}"]' for number in colliding)
    for text in (f'["set",[{members}]]', f'["frozenset",[{members}]]'):
        assert isinstance(decode(text), Opaque)
    assert isinstance(decode(encode(dict.fromkeys(colliding[:100]))), Opaque)


def _in_each_others_way(bits: int) -> list[int]:
    """Different hashes, of which a third fills the slots that a table of 2**bits tries one after another."""
    filling, slot = [], 0
    for _ in range((1 << bits) // 3):
        filling.append(slot)
        slot = (5 * slot + 1) % (1 << bits)
    return filling + [(1 << bits) * number for number in range(1, len(filling) - 4)]


@pytest.mark.parametrize("tables", [1, 8])
def test_keys_made_to_look_for_a_place_do_not_hang_who_reads_them(tables: int) -> None:
    table = f'["set",{_in_each_others_way(20 if tables == 1 else 16)}]'
    began = time.process_time()
    decode(f'["list",[{",".join([table] * tables)}]]')
    assert time.process_time() - began < 10


def test_large_tables_of_text_are_read() -> None:
    words = {str(number) for number in range(100_000)}
    assert decode(encode(words)) == words
    assert decode(encode(dict.fromkeys(range(40_000), 1))) == dict.fromkeys(range(40_000), 1)
