from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import BrokenReference, GrpoError, PluginError, RecipeError, UnknownComponent, UsageError
from grpo_core.plugins.catalog import Entry
from grpo_core.plugins.references import parse_reference
from grpo_core.plugins.specs import Kind, RewardSpec
from grpo_core.recipe.components import find_component, plan_entry, plan_object
from tests.core.recipe.fakes import BREVITY, HERE, NEEDS_ENGINE, ROLLOUT, TIMED, fake_host

_CATALOG = fake_host().catalog


def _entry(spec: Any, distribution: str = "acme") -> Entry:
    return Entry(spec=spec, distribution=distribution, version="1.2")


@pytest.mark.parametrize("text", ["brevity", "short", "acme/brevity"])
def test_a_registered_component_is_found_by_name_alias_and_plugin(text: str) -> None:
    entry = find_component("reward", text, catalog=_CATALOG).entry
    assert entry is not None
    assert entry.qualified_name == "acme/brevity"


def test_an_object_needs_no_catalog() -> None:
    found = find_component("reward", "./mine.py:f", catalog=_CATALOG)
    assert found.entry is None
    assert found.reference.value.endswith("/mine.py:f")


@pytest.mark.parametrize(
    ("kind", "text", "error", "message"),
    [
        ("reward", "brevty", UnknownComponent, "no plugin registers a reward 'brevty'.*Did you mean 'brevity'"),
        ("reward", "./mine.py", UsageError, "cannot be a reward"),
        ("reward", "brevity#5", UsageError, "asks for #5 rows, but is not a dataset"),
        ("rollout", "./mine.py:f", UsageError, "cannot be a rollout backend"),
        ("trainer", "hf:a/b", UsageError, "cannot be a trainer backend"),
    ],
)
def test_what_cannot_be_a_component_says_why(kind: Kind, text: str, error: type[GrpoError], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        find_component(kind, text, catalog=_CATALOG)


def test_a_component_is_planned_with_its_defaults() -> None:
    planned = plan_entry(_entry(BREVITY), {"limit": 2})
    assert planned.model_dump() == {
        "name": "acme/brevity",
        "target": f"{HERE}:make",
        "options_model": f"{HERE}:BrevityOptions",
        "options": {"max_characters": 200, "limit": 2.0},
        "distribution": "acme",
        "version": "1.2",
        "capabilities": (),
    }


def test_a_backend_is_planned_with_its_capabilities() -> None:
    assert plan_entry(_entry(ROLLOUT), {}).capabilities == ("weights:shared", "weights:stream")


def test_a_one_file_plugin_has_no_distribution() -> None:
    planned = plan_entry(_entry(TIMED, "mine.py"), {})
    assert (planned.name, planned.distribution, planned.version) == ("mine.py/timed", None, None)


def test_every_wrong_option_is_reported() -> None:
    with pytest.raises(RecipeError) as caught:
        plan_entry(_entry(BREVITY), {"max_charcters": 1, "limit": "x"})
    assert sorted(map(str, caught.value.problems)) == [
        'options.limit: must be a number, not "x"',
        "options.max_charcters: unknown option; did you mean 'max_characters'?",
    ]


def test_an_option_that_is_quoted_is_no_number() -> None:
    with pytest.raises(RecipeError) as caught:
        plan_entry(_entry(BREVITY), {"max_characters": "3", "limit": True, "odd": 1})
    assert list(map(str, caught.value.problems)) == [
        "options.odd: unknown option; known: max_characters, limit",
        'options.max_characters: must be a whole number, not "3"; write it without quotes',
        "options.limit: must be a number, not true",
    ]


def test_options_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"options: these options cannot be written to plan\.json"):
        plan_entry(_entry(BREVITY), {"limit": float("inf")})


def test_a_component_without_options_takes_none() -> None:
    with pytest.raises(RecipeError, match="options: 'timed' takes no options, but has: a, b; remove them"):
        plan_entry(_entry(TIMED), {"a": 1, "b": 2})


def test_options_that_are_no_model_are_the_plugins_fault() -> None:
    spec = RewardSpec(name="odd", summary="", target=f"{HERE}:make", options=f"{HERE}:brevity")
    with pytest.raises(PluginError, match="the options of 'odd', is no pydantic model") as caught:
        plan_entry(_entry(spec), {})
    assert caught.value.hint == "Report it to the author of the plugin."


def test_what_is_required_and_not_installed_is_named() -> None:
    with pytest.raises(PluginError, match=r"'engine' needs no-such-engine>=2 \| another, not installed here") as caught:
        plan_entry(_entry(NEEDS_ENGINE), {})
    assert caught.value.hint == "pip install 'no-such-engine>=2'"


def test_an_object_in_a_file_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def good(completions):\n    return [0.0]\n")
    planned = plan_object(parse_reference("./mine.py:good", base=tmp_path), {})
    assert planned.name == "./mine.py:good"
    assert planned.target == f"{tmp_path}/mine.py:good"
    with pytest.raises(BrokenReference, match="has no 'god'"):
        plan_object(parse_reference("./mine.py:god", base=tmp_path), {})


def test_an_object_takes_no_options() -> None:
    with pytest.raises(RecipeError, match="options: 'json:dumps' takes no options; only a component that a plugin"):
        plan_object(parse_reference("json:dumps"), {"a": 1})
