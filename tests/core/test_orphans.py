"""A process that is told to die with its parent does, whatever it is doing; one that parts from it ends by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from grpo_core.orphans import go_first
from tests.processes import alive, wait_until_gone

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
print(child.pid, child.stdout.readline(), flush=True)
time.sleep(600)
"""
HEADER = "import ctypes, os, time\nfrom grpo_core.orphans import *\n"


def start(child: str) -> tuple[subprocess.Popen[str], int]:
    """A parent, and the number of its child once that has printed a line."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, HEADER + textwrap.dedent(child)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline().split()[0])


def outlived(child: str, *, limit_s: float = 10.0) -> bool:
    """Whether a child still runs some time after its parent was killed; the child prints a line when it is ready."""
    parent, pid = start(child)
    try:
        with parent:
            parent.kill()
        return wait_until_gone([pid], limit_s) != []
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_process_dies_with_its_parent_while_it_holds_pythons_lock() -> None:
    assert not outlived("die_with_parent(os.getppid()); print(flush=True); ctypes.PyDLL(None).sleep(600)")


def test_one_that_was_not_told_so_stays() -> None:
    assert outlived("print(flush=True); time.sleep(600)", limit_s=1.0)


def test_a_parent_that_is_gone_already_is_noticed() -> None:
    child = "import os\nfrom grpo_core.orphans import die_with_parent\ndie_with_parent(os.getppid() + 1)\nprint('on')"
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_process_that_has_parted_ends_when_it_likes() -> None:
    child = """
        parent = os.getppid()
        die_with_parent(parent)
        part_from_parent()
        print(flush=True)
        while not orphaned(parent):
            time.sleep(0.05)
        time.sleep(600)
    """
    assert outlived(child, limit_s=1.5)


@pytest.mark.slow
def test_one_that_looks_late_ends_although_it_holds_pythons_lock() -> None:
    child = """
        die_with_parent(os.getppid())
        part_from_parent(looks_late=True)
        print(flush=True)
        while True:
            ctypes.PyDLL(None).sleep(600)  # a signal wakes it
    """
    assert not outlived(child, limit_s=30.0)


def test_a_rank_of_another_starter_is_bound_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPO_LAUNCHER_PID", raising=False)
    assert outlived("die_with_launcher(); part_from_parent(); print(flush=True); time.sleep(600)", limit_s=1.0)


def test_a_rank_hears_of_its_launcher_and_tells_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_LAUNCHER_PID", "1")  # not the parent: that launcher is gone
    told = "import os\nfrom grpo_core.orphans import die_with_launcher\ndie_with_launcher()\nprint('on')"
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 1
    monkeypatch.setenv("GRPO_LAUNCHER_PID", str(os.getpid()))
    asked = f"{told}\nprint('GRPO_LAUNCHER_PID' in os.environ)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["on", "False"]


def test_a_process_that_is_to_go_first_has_a_higher_score_and_never_a_lower_one() -> None:
    script = "from grpo_core.orphans import go_first\n{}go_first()\nprint(open('/proc/self/oom_score_adj').read())"
    more = "open('/proc/self/oom_score_adj', 'w').write('900')\n"
    for before, expected in (("", "800"), (more, "900")):
        done = subprocess.run([sys.executable, "-c", script.format(before)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_where_the_kernel_keeps_no_score_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    before = Path("/proc/self/oom_score_adj").read_text()
    monkeypatch.setattr(Path, "read_text", refuse)
    go_first()
    monkeypatch.undo()
    assert Path("/proc/self/oom_score_adj").read_text() == before


def test_it_imports_nothing_that_takes_time() -> None:
    script = "import sys, grpo_core.worker; print(sorted({'torch', 'typer', 'rich', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
