"""What a path leads to is looked at before it is opened; everything that is wrong with it is an `OSError` in words."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from grpo_core.regular_files import TEXT_BYTES, open_file, path_fault, read_bytes, read_text, shown, unusual_kind


def reason_of(path: str | Path) -> str:
    with pytest.raises(OSError) as caught:
        read_text(path)
    return str(caught.value.strerror)


def test_text_is_read_with_the_line_ends_that_python_gives_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("é\r\nb\rc\n".encode())
    assert read_text(tmp_path / "a.txt") == (tmp_path / "a.txt").read_text(encoding="utf-8") == "é\nb\nc\n"


def test_what_may_have_no_end_is_named_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    short = Path(f"/proc/self/fd/{os.open(tmp_path, os.O_RDONLY)}")  # a socket's name has 107 bytes at most
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(short / "s"))
        found = {name: reason_of(path) for name, path in (("fifo", tmp_path / "fifo"), ("socket", tmp_path / "s"))}
    os.close(int(short.name))
    found |= {"zero": reason_of("/dev/zero"), "folder": reason_of(tmp_path)}
    assert found == {
        "fifo": "it is a FIFO, not a file",
        "socket": "it is a socket, not a file",
        "zero": "it is a device, not a file",
        "folder": "it is a folder, not a file",
    }


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "text").write_text("a")
    (tmp_path / "link").symlink_to("text")
    assert [unusual_kind(tmp_path / name) for name in ("zero", "circle", "link", "gone")] == [
        "a device",
        None,
        None,
        None,
    ]
    assert reason_of(tmp_path / "circle") == "Too many levels of symbolic links"
    assert read_text(tmp_path / "link") == "a"


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("a\0b", "there is a NUL byte in it"),
        ("\udcff.txt", "it is not UTF-8"),
        ("x/" + "é" * 150, "it has a name of 300 bytes, and a name has at most 255"),
        ("/".join(["ab"] * 2000), "it has 5999 bytes, and a path has at most 4095"),
    ],
)
def test_a_path_that_no_file_can_have_is_told_why(path: str, fault: str) -> None:
    assert str(path_fault(path)).startswith(fault)
    assert reason_of(path).startswith(fault)


def test_the_longest_paths_that_there_are_have_no_fault() -> None:
    assert path_fault("x/" + "é" * 127) is None
    assert path_fault("/".join(["ab"] * 1300)) is None
    assert path_fault("") is None


def test_a_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(TEXT_BYTES + 1)
    assert reason_of(tmp_path / "sparse") == "it has more than 16 MiB"
    assert len(read_bytes(tmp_path / "sparse", most=TEXT_BYTES + 1)) == TEXT_BYTES + 1


def test_paths_are_shown_in_signs_that_can_be_printed() -> None:
    assert shown("a\0\udcff") == "'a\\x00\\xdcff'"
    long = shown("a" * 300 + "/name.yaml")
    assert len(long) == 162
    assert long.endswith("/name.yaml'"), "the end of a path says most"


def test_a_fifo_that_somebody_writes_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    done = threading.Event()

    def read() -> None:
        with pytest.raises(OSError, match="it is a FIFO"), open_file(tmp_path / "fifo"):
            pass
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(30)
