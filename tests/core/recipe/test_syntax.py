import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.recipe.syntax import RecipeSyntaxError, all_paths, parse_scalar, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("5e-7", 5e-7),
        ("-1.5E+3", -1500.0),
        (".5", 0.5),
        ("7", 7),
        ("0x10", 16),
        ("0o17", 15),
        ("010", 10),
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        (".inf", math.inf),
        ("-.INF", -math.inf),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    assert parse_scalar(text) == value
    assert parse_yaml(f"a: {text}").value == {"a": value}


@pytest.mark.parametrize("text", ["off", "on", "yes", "no", "1:30", "2024-01-01", "1_000", "e5", "=", "<<"])
def test_what_yaml_1_1_would_convert_stays_text(text: str) -> None:
    assert parse_scalar(text) == text
    assert parse_yaml(f"a: {text}").value == {"a": text}


def test_nan_is_read_as_such() -> None:
    assert math.isnan(parse_scalar(".nan"))


def test_every_value_has_its_line() -> None:
    parsed = parse_yaml("a: 1\nb:\n  c: [x,\n    y]\n  d: {e: 2}\n")
    assert parsed.lines[("a",)] == 1
    assert parsed.lines[("b",)] == 2
    assert parsed.lines[("b", "c")] == 3
    assert parsed.lines[("b", "c", 1)] == 4
    assert parsed.lines[("b", "d", "e")] == 5


def test_an_empty_document_is_none() -> None:
    assert parse_yaml("# nothing\n").value is None


def test_aliases_are_read() -> None:
    assert parse_yaml("a: &x [1, 2]\nb: *x\n").value == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key 'a' is there twice, first in line 1", 3),
        ("x:\n  1: y\n", "the key 1 is not text", 2),
        ("? [a]\n: b\n", "the key a list or mapping is not text", 1),
        ("a: !!python/object:os.system x\n", "tags such as python/object:os.system are not supported", 1),
        ("a: !!int x\n", "x is not a whole number", 1),
        ("a: [1,\nb", "while parsing a flow sequence", 2),
        ("a: {use: hf:a/b?split=x}", "between brackets, text with a \\? needs quotes", 1),
        ("a:\n\tb: 1\n", "indent with spaces, not with tabs", 2),
        ("a: 1\n---\nb: 2\n", "expected a single document", 2),
        ("a: \x01\n", "unacceptable character", None),
        ("a: " + "9" * 5000, "is not a whole number", 1),
    ],
)
def test_faults_name_the_line(text: str, message: str, line: int | None) -> None:
    with pytest.raises(RecipeSyntaxError, match=message.replace("[", r"\[")) as caught:
        parse_yaml(text)
    assert caught.value.line == line


def test_a_value_that_contains_itself_is_refused() -> None:
    with pytest.raises(RecipeSyntaxError, match="contain themselves"):
        parse_yaml("&a [*a]")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(RecipeSyntaxError, match="nested too deeply"):
        parse_yaml("[" * 1500)


def test_aliases_of_aliases_cannot_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(RecipeSyntaxError, match="more than 100000 values"):
        parse_yaml("\n".join(lines))


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(RecipeSyntaxError):
        parse_yaml(text)


def test_all_paths_reach_into_mappings_and_lists() -> None:
    assert list(all_paths({"a": [1, {"b": 2}], "c": 3})) == [("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c",)]


@pytest.mark.parametrize("text", ["9" * 5000, "0x" + "f" * 5000, "0o" + "7" * 9000])
def test_a_number_of_more_digits_than_python_writes_is_refused(text: str) -> None:
    with pytest.raises(RecipeSyntaxError, match="is not a whole number"):
        parse_yaml(f"steps: {text}")
