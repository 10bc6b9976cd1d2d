"""SHA256SUMS of a folder: what `sha256sum -c` reads, and every way in which files can differ from it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from grpo_core.loop.checksums import SUMS_FILE, add_sums, faults_of_files, write_sums

ODD = "a\\n \\\\ b\n  c"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "weights").write_bytes(bytes(range(256)) * 9000)
    (tmp_path / "trainer" / ODD).write_bytes(b"odd")
    (tmp_path / "state.json").write_bytes(b"{}")
    write_sums(tmp_path)
    return tmp_path


def test_what_was_written_has_no_fault(folder: Path) -> None:
    assert faults_of_files(folder) == []


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="the command is not installed")
def test_it_is_a_file_that_sha256sum_checks(folder: Path) -> None:
    command = ["sha256sum", "--check", "--strict", SUMS_FILE]
    assert subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.count(": OK") == 3


@pytest.mark.parametrize("byte", [0, 255 * 9000, -1])
def test_one_flipped_bit_is_found(folder: Path, byte: int) -> None:
    data = bytearray((folder / "trainer/weights").read_bytes())
    data[byte] ^= 1
    (folder / "trainer/weights").write_bytes(data)
    assert faults_of_files(folder) == ["trainer/weights is not what was written: its checksum is another"]
    assert faults_of_files(folder, only="state.json") == []


def test_files_that_are_missing_or_that_nobody_listed_are_found(folder: Path) -> None:
    (folder / "state.json").unlink()
    (folder / "trainer" / "more").touch()
    (folder / "trainer" / ".partial-universal").mkdir()
    (folder / "trainer" / ".partial-universal" / "half").touch()  # a kill's
    assert faults_of_files(folder) == ["state.json is missing", "trainer/more has no checksum in SHA256SUMS"]
    assert faults_of_files(folder, only="state.json") == ["state.json is missing"]


@pytest.mark.parametrize("text", ["", "nonsense\n", f"{'0' * 63}  a\n", f"{'0' * 64} a\n"])
def test_damaged_checksums_are_a_fault(folder: Path, text: str) -> None:
    (folder / SUMS_FILE).write_text(text, encoding="utf-8")
    assert faults_of_files(folder) == ["SHA256SUMS cannot be read: line 1 is not a checksum and a name"]


def test_what_came_later_is_added_and_the_rest_stays(folder: Path) -> None:
    (folder / "trainer" / "more").write_text("more", encoding="utf-8")
    (folder / "state.json").write_text("other", encoding="utf-8")
    add_sums(folder)
    assert faults_of_files(folder) == ["state.json is not what was written: its checksum is another"]
