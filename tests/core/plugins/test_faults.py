from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grpo_core.errors import BrokenReference
from grpo_core.plugins.faults import describe, short_path
from grpo_core.plugins.targets import load_module


def test_a_fault_has_the_first_line_of_the_message_and_the_innermost_place(tmp_path: Path) -> None:
    file = tmp_path / "deep.py"
    file.write_text("def inner():\n    raise ValueError('one\\ntwo')\n\n\ninner()\n", encoding="utf-8")
    with pytest.raises(BrokenReference) as caught:
        load_module(str(file))
    cause = caught.value.__cause__
    assert cause is not None
    fault = describe(cause)
    assert fault.what == "ValueError: one"
    assert fault.where == "deep.py:2"
    assert str(fault) == "ValueError: one (deep.py:2)"


def test_a_traceback_begins_where_the_foreign_code_begins(tmp_path: Path) -> None:
    file = tmp_path / "shallow.py"
    file.write_text("1 / 0\n", encoding="utf-8")
    with pytest.raises(BrokenReference) as caught:
        load_module(str(file))
    assert caught.value.__cause__ is not None
    text = describe(caught.value.__cause__).traceback
    assert text.splitlines()[1].strip() == f'File "{file}", line 1, in <module>'
    assert "grpo_core" not in text


def test_an_exception_without_a_message_or_a_place_is_its_type() -> None:
    assert str(describe(KeyError())) == "KeyError"


def test_an_exit_and_a_syntax_error_read_as_what_they_are() -> None:
    assert describe(SystemExit(7)).what == "it calls sys.exit(7)"
    with pytest.raises(SyntaxError) as caught:
        compile("a b", "/nowhere/odd.py", "exec")
    assert str(describe(caught.value)) == "SyntaxError: invalid syntax (/nowhere/odd.py:1)"


def test_a_path_is_shown_from_the_folder_it_is_imported_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/site", "/site/inner", *sys.path])
    assert short_path("/site/inner/acme/plugin.py") == "acme/plugin.py"
    assert short_path("/elsewhere/plugin.py") == "/elsewhere/plugin.py"
