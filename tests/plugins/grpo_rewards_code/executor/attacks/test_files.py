"""No program reaches a file that is not of its folder, by a path or by a descriptor."""

from __future__ import annotations

import os
from pathlib import Path

from tests.plugins.grpo_rewards_code.places import Place


def test_no_file_outside_can_be_read_or_written(place: Place, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o777)
    secret, target = tmp_path / "secret.txt", tmp_path / "left.txt"
    secret.write_text("hunter")
    os.chmod(secret, 0o666)
    program = f"""
import os
def attempt(do):
    try:
        return do()
    except OSError as error:
        return type(error).__name__
print(attempt(lambda: open({str(secret)!r}).read()))
print(attempt(lambda: open({str(secret)!r}, "a").write("x")))
print(attempt(lambda: open({str(target)!r}, "w").write("x")))
print(attempt(lambda: os.remove({str(secret)!r})))
print(attempt(lambda: os.rename({str(secret)!r}, {str(target)!r})))
print(attempt(lambda: os.truncate({str(secret)!r}, 0)))
print(attempt(lambda: os.chmod({str(secret)!r}, 0)))
print(attempt(lambda: os.utime({str(secret)!r}, (0, 0))))
print(attempt(lambda: os.mkdir({str(target)!r})))
print(attempt(lambda: os.link({str(secret)!r}, "/tmp/linked")))
print(attempt(lambda: os.symlink({str(secret)!r}, "/tmp/symbolic") or open("/tmp/symbolic").read()))
print(attempt(lambda: open("/etc/passwd").read()))
print(attempt(lambda: os.listdir({str(tmp_path)!r})))
print(attempt(lambda: open("/proc/1/root{secret}").read()))
"""
    before = secret.stat()
    said = place.says(program).split()
    assert set(said) <= {"FileNotFoundError", "PermissionError", "OSError", "NotADirectoryError"}, said
    after = secret.stat()
    assert secret.read_text() == "hunter"
    assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)
    assert os.listdir(tmp_path) == ["secret.txt"]


def test_the_system_s_own_folders_are_read_only(place: Place) -> None:
    program = """
import os, sys
written = []
folders = ["/", "/usr", "/usr/lib", "/etc", "/dev", "/proc", "/var", "/var/tmp", "/run", "/sys"]
for folder in [*folders, os.path.dirname(os.__file__)]:
    try:
        open(folder + "/planted.py", "w").close()
        written.append(folder)
    except OSError:
        pass
print(written)
"""
    assert place.says(program) == "[]"


def test_no_descriptor_of_the_trainer_is_inherited(place: Place, tmp_path: Path) -> None:
    file = (tmp_path / "open.txt").open("w")
    os.set_inheritable(file.fileno(), True)
    program = """
import os
found = []
for number in range(3, 2000):
    try:
        os.fstat(number)
        found.append(number)
        os.write(number, b"{}")
    except OSError:
        pass
print(found)
"""
    try:
        assert place.says(program) in ("[4]", "[]")  # where the result goes: what it says is the program's to say
    finally:
        file.close()
    assert (tmp_path / "open.txt").read_text() == ""
