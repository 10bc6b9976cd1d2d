from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grpo_core.errors import BrokenReference
from grpo_core.plugins.outline import check_target, source_file
from grpo_core.plugins.targets import load_target

_EVERY_WAY = """
import os.path as paths, json
from math import sqrt as root
one = two, *three = 1, 2
four: int = 4
if four:
    five = 5
try:
    import nothing_of_this_name as six
except ImportError as problem:
    six = None
for seven in ():
    with open(seven) as eight:
        pass
(nine := 9)
match [1, {"a": 2}]:
    case [ten, {"a": _, **eleven}]:
        pass
def twelve():
    global thirteen
    thirteen = 13
twelve()
async def fourteen(): pass
class Box:
    content = 1
    def open(self): pass
"""
_NAMES = (
    *("paths", "json", "root", "one", "two", "three", "four", "five", "six", "seven", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "Box", "Box.content", "Box.open"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{_EVERY_WAY}", encoding="utf-8")
    return path


def test_every_name_that_a_file_binds_is_found_without_running_it(file: Path) -> None:
    for name in _NAMES:
        check_target(f"{file}:{name}")
    assert not file.with_name("ran").exists()


def test_a_name_that_is_nowhere_in_a_file_is_named_with_its_neighbour(file: Path) -> None:
    with pytest.raises(BrokenReference, match=r"file '.*mine.py' has no 'twelv', needed by") as caught:
        check_target(f"{file}:twelv")
    assert "'twelve'" in str(caught.value.hint)
    with pytest.raises(BrokenReference, match=r"'.*mine.py:Box' has no 'contents', needed by"):
        check_target(f"{file}:Box.contents")
    file.write_text("def f():\n    local = 1\n", encoding="utf-8")
    with pytest.raises(BrokenReference, match="has no 'local'"):
        check_target(f"{file}:local")


@pytest.mark.parametrize(
    "source",
    [
        "from os.path import *\n",
        "globals()['made'] = len\n",
        "def __getattr__(name):\n    return len\n",
        "import sys\nsetattr(sys.modules[__name__], 'made', len)\n",
        "exec('made = len')\n",
    ],
)
def test_what_only_running_tells_is_left_to_who_runs_it(tmp_path: Path, source: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source, encoding="utf-8")
    check_target(f"{path}:made")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"def f(:\n", r"SyntaxError: invalid syntax \(.*mine.py:1\)"),
        (b"return 1\n", "SyntaxError: 'return' outside function"),
        (b"\xff = 1\n", "SyntaxError"),
        (b"f = 1\0\n", "null bytes"),
        (b"f = " + b"(" * 500 + b")" * 500 + b"\n", "Error"),
    ],
)
def test_a_file_that_is_no_python_is_told_as_when_it_is_imported(tmp_path: Path, source: bytes, reason: str) -> None:
    path = tmp_path / "mine.py"
    path.write_bytes(source)
    for look in (check_target, load_target):
        with pytest.raises(BrokenReference, match=rf"'{path}:f' cannot be imported: .*{reason}"):
            look(f"{path}:f")


def test_a_long_sum_is_no_deeper_than_python_reads(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"f = {'+'.join('1' for _ in range(900))}\n", encoding="utf-8")
    check_target(f"{path}:f")


def test_modules_are_looked_up_and_none_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "canary_package"
    (package / "inner").mkdir(parents=True)
    for folder in (package, package / "inner"):
        (folder / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    (package / "inner" / "mod.py").write_text("def f(): pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    check_target("canary_package.inner.mod:f")
    assert source_file("canary_package.inner.mod") == package / "inner" / "mod.py"
    for target, reason in (
        ("canary_package.inner.mod:g", "module 'canary_package.inner.mod' has no 'g'"),
        ("canary_package.iner.mod:f", "there is no module 'canary_package.iner', needed by"),
        ("canary_package.inner.mod.more:f", "there is no module 'canary_package.inner.mod.more'"),
        ("zzqqxx.rewards:f", "there is no module 'zzqqxx', needed by 'zzqqxx.rewards:f'"),
    ):
        with pytest.raises(BrokenReference, match=reason):
            check_target(target)
    assert not (tmp_path / "ran").exists()
    assert not [name for name in sys.modules if name.startswith("canary_package")]


def test_compiled_modules_and_modules_that_make_others_pass() -> None:
    check_target("math:nothing_of_this_name")
    check_target("os.path:join")
    check_target("torch.nothing_of_this_name:f")
