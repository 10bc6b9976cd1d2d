from __future__ import annotations

import grpo_core.protocols
from grpo_core import api, errors
from grpo_core.plugins import hookspecs, specs


def test_the_names_of_the_api_are_sorted_and_complete() -> None:
    assert list(api.__all__) == sorted(api.__all__)
    assert set(api.__all__) == {name for name in vars(api) if not name.startswith("_")}


def test_an_author_finds_every_spec_and_protocol_in_the_api() -> None:
    concrete = {name for name in specs.__all__ if name.endswith("Spec")} - {"ComponentSpec"}
    assert {*concrete, *grpo_core.protocols.__all__, "hookimpl"} <= set(api.__all__)


def test_an_author_finds_every_type_that_a_hook_is_given() -> None:
    hooks = [value for name, value in vars(hookspecs).items() if name.startswith("grpo_")]
    given = {kind for hook in hooks for name, kind in hook.__annotations__.items() if name != "return"}
    assert given <= set(api.__all__)


def test_the_errors_of_the_api_are_the_frameworks_own() -> None:
    for name in api.__all__:
        if name.endswith("Error"):
            assert getattr(api, name) is getattr(errors, name)
