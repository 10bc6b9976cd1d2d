from __future__ import annotations

import pytest
from rich.text import Text

from grpo_core.cli.console import stdout
from grpo_core.cli.tables import print_table

ROWS = [("a[0]", Text("good", style="green"), "one\ntwo"), ("longer", "", "")]


def test_where_no_terminal_is_columns_are_aligned_and_lines_joined(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "state", "parts"), ROWS)
    assert capsys.readouterr().out == ("name    state  parts\na[0]    good   one; two\nlonger\n")


def test_on_a_terminal_headers_are_ruled_and_the_last_column_wraps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(stdout, "_width", 40)
    print_table(("name", "state", "parts"), [("a[0]", Text("good", style="green"), "a text of several words " * 3)])
    printed = capsys.readouterr().out
    assert "─────" in printed
    assert "a[0]" in printed
    assert max(map(len, printed.splitlines())) <= 40
    assert printed.count("several") == 3


def test_a_table_without_rows_is_its_headers(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "state"), [])
    assert capsys.readouterr().out == "name  state\n"
