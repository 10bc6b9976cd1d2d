"""Programs among answers: told by their syntax, hidden by others, changed a little."""

from __future__ import annotations

import pytest

from grpo_core.trial.programs import hides, is_program, near_miss


@pytest.mark.parametrize(
    "text", ["def f():\n    pass", "print(int(input()) * 2)", "import os", "for i in x:\n    y = i"]
)
def test_what_defines_imports_loops_or_prints_is_a_program(text: str) -> None:
    assert is_program(text)


@pytest.mark.parametrize("text", ["42", "3 + 4", "x = 3", "Lima", "the answer is 4", "print 4", "", "a\0b", "(" * 500])
def test_numbers_formulas_and_sentences_are_none(text: str) -> None:
    assert not is_program(text)
    assert near_miss(text) is None or text in ("42", "3 + 4", "x = 3")


def test_a_text_that_is_too_long_to_parse_is_none() -> None:
    assert not is_program("import os\n" * 20_000)


def test_a_program_is_hidden_by_one_that_defines_the_same_names_or_prints_as_well() -> None:
    f, g = "def f():\n    return 1", "def g():\n    return 2"
    assert hides(f"{f}\n{g}", f)
    assert not hides(g, f)
    assert not hides(f, f"{f}\n{g}")
    assert not hides("no program", f)
    assert not hides(f, "x = 1")
    script = "def main():\n    print(1)\nmain()"
    assert hides("print(2)", script)
    assert not hides("def main():\n    print(1)", script)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("def f(x):\n    return x + y", "def f(x):\n    return x - y"),
        ("def f(x):\n    return x < y", "def f(x):\n    return x >= y"),
        ("def f(x):\n    return 3", "def f(x):\n    return 4"),
        ("def f(x):\n    return True", "def f(x):\n    return False"),
        ("def f(x):\n    return x and y", "def f(x):\n    return x or y"),
        ('def f(x):\n    """1 + 2"""\n    return x', None),
        ("def f(x):\n    while x < 3:\n        x += 1\n    return x", None),
        ("def f(x):\n    return x ** y", None),
    ],
)
def test_one_number_truth_value_or_operator_is_changed(text: str, changed: str | None) -> None:
    assert near_miss(text) == changed


def test_a_program_that_is_nested_too_deeply_has_no_near_miss() -> None:
    assert near_miss(f"def f(x):\n    return {' + '.join(['x'] * 3000)}") is None


def test_the_same_thing_is_changed_each_time_and_only_one() -> None:
    text = "def f(x):\n    return x + 1 - 2 + 3"
    changed = near_miss(text)
    assert changed == near_miss(text)
    assert changed is not None
    assert sum(one != other for one, other in zip(changed, text, strict=True)) == 1
