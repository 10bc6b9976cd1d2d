"""A program's own folder: there in every isolation, the same for it in each, bounded, and gone with the run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grpo_rewards_code.executor.types import Limits, StdinRun
from tests.plugins.grpo_rewards_code.places import Place, plan_for

_LOOK = "import os\nprint(os.listdir())\n"


def _places() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("grpo-programs-")}


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of this test's own: sandboxes of other tests come and go at any time in the usual
    one. Sandboxes of root run as nobody, who may not enter pytest's folders."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o1777)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        plan_for.cache_clear()
        yield Path(os.path.realpath(folder))
    plan_for.cache_clear()


def test_it_is_where_a_program_is_at_home(place: Place) -> None:
    program = """
import os, tempfile
from pathlib import Path
here = os.getcwd()
print(len({here, os.environ["HOME"], os.path.expanduser("~"), str(Path.home()), tempfile.gettempdir()}), os.listdir())
print(oct(os.stat(here).st_mode & 0o777))
"""
    assert place.says(program).split("\n") == ["1 []", "0o700"]


@pytest.mark.parametrize(
    ("use", "printed"),
    [
        ('open("a.txt", "w").write("text")\nprint(open("a.txt").read())', "text"),
        ('f = open("a", "a+")\nf.write("12")\nf.seek(0)\nf.truncate(1)\nprint(f.read())', "1"),
        ('open("a", "w").write("long")\nopen("a", "w").write("s")\nprint(open("a").read())', "s"),
        (
            "from pathlib import Path\na = Path('a')\na.write_bytes(b'x')\na.touch()\nprint(a.stat().st_size)",
            "1",
        ),
        (
            "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').close()\nos.replace('a/b/c', 'd')\n"
            "print(os.listdir('a/b'))",
            "[]",
        ),
        ('import os\nopen("a", "w").close()\nos.rename("a", "b")\nos.remove("b")\nprint(os.listdir())', "[]"),
        ('import os\nos.mkdir("a")\nos.rmdir("a")\nos.symlink("x", "y")\nprint(os.readlink("y"))', "x"),
        ('import os\nopen("a", "w").write("1")\nos.link("a", "b")\nprint(open("b").read())', "1"),
        (
            "import os, tempfile\nwith tempfile.NamedTemporaryFile('w+') as f, tempfile.TemporaryDirectory() as d:\n"
            "    f.write('x')\n    open(os.path.join(d, 'y'), 'w').write('z')\n    f.seek(0)\n    print(f.read())\n",
            "x",
        ),
        ("import tempfile\nwith tempfile.TemporaryFile() as f:\n    print(f.write(b'xyz'))", "3"),
        (
            "import sqlite3\nwith sqlite3.connect('a.db') as d:\n    d.execute('create table t(x)')\n"
            "    d.execute('insert into t values (7)')\nprint(*sqlite3.connect('a.db').execute('select x from t'))",
            "(7,)",
        ),
        (
            "import shutil\nopen('a', 'w').write('1')\nshutil.copyfile('a', 'b')\nshutil.move('b', 'c')\n"
            "print(open('c').read())",
            "1",
        ),
        (
            "import sys\nopen('mine.py', 'w').write('x = 7')\nsys.path.insert(0, '.')\nimport mine\nprint(mine.x)",
            "7",
        ),
        ("import fileinput\nopen('a', 'w').write('1\\n2\\n')\nprint(sum(map(int, fileinput.input('a'))))", "3"),
    ],
)
def test_what_programs_do_with_files_works_in_it(place: Place, use: str, printed: str) -> None:
    assert place.says(use) == printed


def test_it_is_empty_for_every_run(place: Place) -> None:
    program = f"{_LOOK}open('left', 'w').close()\nos.mkdir('folder')\nopen('folder/left', 'w').close()"
    assert [each.stdout for each in place.run(program, *[StdinRun(stdin="")] * 3)] == ["[]\n"] * 3
    assert [each.stdout for each in place.scripts([program] * 3)] == ["[]\n"] * 3


def test_another_program_s_is_closed_to_it() -> None:
    place = Place("alone")
    listing = f"""
import os, time
time.sleep(0.5)
top = os.path.dirname(os.path.dirname(os.getcwd()))
for folder in (top, os.path.dirname(os.getcwd())):
    try:
        print(os.listdir(folder))
    except PermissionError:
        print("closed")
for name in {sorted(_places())!r}:
    try:
        print(os.listdir(os.path.join(top, name)))
    except OSError:
        pass
try:
    open("../planted", "w")
except PermissionError:
    print("closed")
try:
    os.rename(os.getcwd(), "../moved")
except OSError:
    print("closed")
"""
    writing = "import time\nopen('mine', 'w').write('x')\ntime.sleep(1)"
    assert place.scripts([writing, listing])[1].stdout.split() == ["closed"] * 4


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("open('left', 'w').close()", "ok"),
        ("import os\nos.mkdir('a', 0)\nos.mkdir('b', 0o300)\nos.mkdir('b/c', 0)\nopen('b/d', 'w').close()", "ok"),
        ("open('left', 'w').close()\nimport ctypes\nctypes.string_at(0)", "killed"),
        ("open('left', 'w').close()\nimport time\ntime.sleep(60)", "timeout"),
    ],
)
def test_nothing_of_it_is_left_on_this_machine(temporary: Path, program: str, status: str) -> None:
    place = Place("alone")
    assert temporary in Path(place.says("import os\nprint(os.getcwd())")).parents
    assert place.script(program, limits=Limits(wall_s=1.0)).status == status
    assert not os.listdir(temporary)


def test_nothing_of_it_is_left_when_the_trainer_is_killed(temporary: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[4])!r})
from tests.plugins.grpo_rewards_code.places import Place
Place("alone").script("open('left', 'w').close()\\nimport time\\ntime.sleep(60)")
"""
    with subprocess.Popen([sys.executable, "-c", script]) as trainer:
        assert _within_a_minute(lambda: any(temporary.glob("grpo-programs-*/*/left")))
        trainer.kill()
    assert _within_a_minute(lambda: not os.listdir(temporary))


def _within_a_minute(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
    return condition()
