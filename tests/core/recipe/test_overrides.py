import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.recipe.overrides import Override, dotted, parse_override
from grpo_core.recipe.syntax import RecipeSyntaxError

_SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")))
_VALUES = st.recursive(
    _SCALARS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.text(st.characters(codec="utf-8", exclude_characters='".=', categories=("L", "N", "P")), min_size=1)


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("trainer.learning_rate=1e-6", ("trainer", "learning_rate"), 1e-6),
        ("rollout.stop=[a,b]", ("rollout", "stop"), ["a", "b"]),
        ("rewards.code_reward.options.timeout_s=5", ("rewards", "code_reward", "options", "timeout_s"), 5),
        ("run.directory=", ("run", "directory"), None),
        ("run.steps = 7", ("run", "steps"), 7),
        ("dataset.use=hf:a/b?split=train#500", ("dataset", "use"), "hf:a/b?split=train#500"),
        ("dataset.system=Answer: yes # really", ("dataset", "system"), "Answer: yes # really"),
        ("objective.importance.correction=off", ("objective", "importance", "correction"), "off"),
        ('summary="7"', ("summary",), "7"),
        ('dataset.columns."a.b=c"=question', ("dataset", "columns", "a.b=c"), "question"),
        ("trainer={learning_rate: 1e-5}", ("trainer",), {"learning_rate": 1e-5}),
    ],
)
def test_key_and_value_are_taken_apart(text: str, path: tuple[str, ...], value: object) -> None:
    assert parse_override(text) == Override(path, value)


@pytest.mark.parametrize("text", ["", "foo", "=1", ".a=1", "a..b=1", 'a."b=1'])
def test_what_is_not_key_value_is_refused(text: str) -> None:
    with pytest.raises(RecipeSyntaxError, match="is not key=value, as in trainer"):
        parse_override(text)


def test_a_broken_list_is_refused_with_advice() -> None:
    with pytest.raises(RecipeSyntaxError, match=r"the value is no YAML .*needs quotes around it"):
        parse_override("rollout.stop=[a")


@given(st.lists(_KEYS, min_size=1, max_size=4), _SCALARS | st.lists(_VALUES) | st.dictionaries(_TEXTS, _VALUES))
def test_what_json_writes_is_read_back(keys: list[str], value: Any) -> None:
    override = parse_override(f"{'.'.join(keys)}={json.dumps(value, ensure_ascii=False)}")
    assert override.value == value
    assert list(override.path) == [key.strip() for key in keys]


@given(_TEXTS)
def test_quoted_text_is_read_back(text: str) -> None:
    assert parse_override(f"a={json.dumps(text, ensure_ascii=False)}").value == text


@given(st.lists(_KEYS | st.sampled_from(["a.b", "c=d"]), min_size=1, max_size=4))
def test_a_written_path_is_read_back(keys: list[str]) -> None:
    assert parse_override(f"{dotted(tuple(keys))}=1").path == tuple(keys)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(RecipeSyntaxError):
        parse_override(text)
