from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_rewards_code.sandbox.inside import privileges
from grpo_rewards_code.sandbox.inside.privileges import barrier, hold_open


def test_the_outermost_folder_that_others_may_not_enter_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "open" / "closed" / "inner"
    inner.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "open", inner):
        folder.chmod(0o755)
    (tmp_path / "open" / "closed").chmod(0o700)
    outer = barrier(str(tmp_path))
    assert barrier(str(inner)) == (outer or str(tmp_path / "open" / "closed"))
    assert barrier("/usr/lib") is None


def test_what_is_held_open_is_reached_by_its_descriptor(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    (closed / "inner" / "file").write_text("text")
    closed.chmod(0o700)
    held = hold_open([str(closed / "inner"), "/usr/lib"])
    name = held.pop(str(closed / "inner"))
    assert not held
    assert Path(name, "file").read_text() == "text"
    os.close(int(name.rpartition("/")[2]))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to give up")
def test_after_giving_up_privileges_only_what_was_revealed_can_be_read(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "shown").mkdir(parents=True)
    (closed / "shown" / "file").write_text("text")
    (closed / "hidden").mkdir()
    (closed / "single").write_text("single")
    closed.chmod(0o700)
    script = f"""
import ctypes, os
from pathlib import Path
from grpo_rewards_code.sandbox.inside.privileges import become, reveal
closed = Path({str(closed)!r})
try:
    reveal([str(closed / "shown"), str(closed / "single"), "/usr/lib"])
except OSError:
    print("mounting is refused")
    raise SystemExit
become(65534, 65534)
print((closed / "shown" / "file").read_text(), (closed / "single").read_text(), (closed / "hidden").exists())
print(os.getresuid(), os.getresgid(), os.getgroups())
try:
    os.setuid(0)
except PermissionError:
    print("not back")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if "mounting is refused" in done.stdout:
        pytest.skip("this root may not mount")
    assert done.stdout.splitlines() == [
        "text single False",
        "(65534, 65534, 65534) (65534, 65534, 65534) []",
        "not back",
    ], done.stderr
    assert (closed / "hidden").exists()


def test_descriptors_that_are_kept_are_beyond_those_that_are_closed() -> None:
    from grpo_rewards_code.sandbox.inside import child

    assert privileges._KEPT >= child._OPEN_FILES + child._FIRST_SAFE
