"""docs/hooks.md has a section for each hook, with its exact signature and an example that calls it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from grpo_core.plugins import hookspecs

PAGE = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text(encoding="utf-8")
HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("grpo_"))


@pytest.mark.parametrize("name", HOOKS)
def test_each_hook_has_a_heading_with_its_exact_signature(name: str) -> None:
    signature = str(inspect.signature(getattr(hookspecs, name))).replace("'", "")
    assert f"### `{name}{signature}`\n" in PAGE


@pytest.mark.parametrize("name", HOOKS)
def test_each_section_has_an_example_of_its_hook(name: str) -> None:
    section = PAGE.split(f"### `{name}(")[1].split("\n### ")[0]
    assert re.search(rf"@hookimpl\ndef {name}\(", section)


def test_no_section_is_about_a_hook_that_does_not_exist() -> None:
    assert sorted(re.findall(r"^### `(grpo_\w+)\(", PAGE, flags=re.MULTILINE)) == HOOKS
