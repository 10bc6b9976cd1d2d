from __future__ import annotations

import sys
from pathlib import Path

from grpo_rewards_code.sandbox.layout import find_layout


def test_the_interpreter_and_its_library_are_shown_and_no_package_of_this_environment() -> None:
    layout = find_layout(None, ())
    shown = [Path(path) for path in layout.paths]
    assert layout.version[:2] == sys.version_info[:2]
    assert not Path(layout.executable).is_symlink()
    assert any(Path(layout.executable).is_relative_to(path) for path in shown)
    assert any(Path(json_file()).is_relative_to(path) for path in shown)
    assert not any(Path(file).is_relative_to(path) for path in shown for file in (__file__, _package_file()))


def test_no_path_lies_in_another() -> None:
    paths = [Path(path) for path in find_layout(None, ("/usr/lib",)).paths]
    assert not [(a, b) for a in paths for b in paths if a != b and a.is_relative_to(b)]


def test_import_folders_are_shown(tmp_path: Path) -> None:
    assert str(tmp_path.resolve()) in find_layout(None, (str(tmp_path),)).paths


def json_file() -> str:
    import json

    return str(Path(json.__file__).resolve())


def _package_file() -> str:
    import grpo_rewards_code

    return str(grpo_rewards_code.__file__)
