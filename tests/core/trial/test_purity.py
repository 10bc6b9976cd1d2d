from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from grpo_core.plugins.targets import load_target
from grpo_core.trial.purity import why_impure

HEAD = "import re\nfrom collections import Counter\n"
BODY = "def near(completions):\n    return [1.0 for _ in completions]\n"


def near(folder: Path, source: str) -> Any:
    (folder / "mine.py").write_text(source, encoding="utf-8")
    return load_target(f"{folder}/mine.py:near")


def test_a_function_whose_module_reaches_nothing_is_taken_to_be_pure(tmp_path: Path) -> None:
    function = near(tmp_path, HEAD + BODY)
    assert why_impure(function) is None
    assert why_impure(functools.partial(function)) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import urllib.request\n", "it may use a service, as its module imports urllib"),
        ("from http import client\n", "it may use a service, as its module imports http"),
        ("import random as r\n", "it may use chance, as its module imports random"),
        ("def later():\n    import subprocess\n", "it may use a process, as its module imports subprocess"),
        ("try:\n    import torch\nexcept ImportError:\n    pass\n", "it may use a model, as its module imports torch"),
    ],
)
def test_what_its_module_imports_tells_what_it_may_use(tmp_path: Path, line: str, why: str) -> None:
    assert why_impure(near(tmp_path, line + BODY)) == why


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("def keep():\n    open('log.txt', 'a').close()\n", "open"),
        ("import pathlib\ndef keep():\n    pathlib.Path('x').write_text('y')\n", "write_text"),
        ("import os\ndef keep():\n    os.makedirs('x')\n", "makedirs"),
    ],
)
def test_what_its_module_does_to_files_tells_that_a_dry_run_would_write(
    tmp_path: Path, line: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert why_impure(near(tmp_path, line + BODY)) == f"it may use files, as its module calls {name}"


def test_what_it_says_itself_counts_whatever_it_imports(tmp_path: Path) -> None:
    assert why_impure(near(tmp_path, "import random\n" + BODY + "near.pure = True\n")) is None
    (tmp_path / "b").mkdir()
    assert why_impure(near(tmp_path / "b", BODY + "near.pure = False\n")) == "it says that it is not pure"


def test_a_function_without_a_source_is_not_taken_to_be_pure() -> None:
    assert why_impure(len) == "its source cannot be read"
