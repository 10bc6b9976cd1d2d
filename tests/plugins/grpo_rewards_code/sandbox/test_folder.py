"""Folders for programs: whatever a program leaves in one is counted, and goes."""

from __future__ import annotations

import fcntl
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grpo_rewards_code.sandbox.inside import folder
from grpo_rewards_code.sandbox.inside.folder import FILES, Folders, exceeds, remove

_NAMES = st.binary(min_size=1, max_size=20).map(lambda name: b"n" + name.replace(b"/", b"_").replace(b"\0", b"_"))


def _tree(top: bytes, kinds: list[tuple[bytes, str, int]]) -> None:
    """Entries one after another: a folder is entered, so that what follows is in it."""
    for name, kind, mode in kinds:
        place = os.path.join(top, name)
        if os.path.lexists(place):
            continue
        if kind == "folder":
            os.mkdir(place)
            top = place
        elif kind == "link":
            os.symlink(b"/", place)
        else:
            with open(place, "wb") as file:
                file.write(b"x" * mode)
        if kind != "link":
            os.chmod(place, mode)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            _NAMES, st.sampled_from(["folder", "file", "link"]), st.sampled_from([0, 0o100, 0o300, 0o500, 0o700])
        ),
        max_size=12,
    )
)
def test_any_tree_is_counted_and_removed(tmp_path: Path, kinds: list[tuple[bytes, str, int]]) -> None:
    top = tmp_path / random.randbytes(8).hex()
    top.mkdir()
    _tree(os.fsencode(top), kinds)
    assert not exceeds([str(top)], 1)
    remove(str(top))
    assert not top.exists()


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    inner, name = os.open(top, os.O_RDONLY), "d" * 255
    for _ in range(80):
        os.mkdir(name, dir_fd=inner)
        outer, inner = inner, os.open(name, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    assert exceeds([str(top)], 1)
    remove(str(top))
    assert not top.exists()


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_bytes(b"x" * (8 << 20))
    top = tmp_path / "top"
    top.mkdir()
    (top / "link").symlink_to(tmp_path / "outside")
    assert not exceeds([str(top)], 1)
    remove(str(top))
    assert (tmp_path / "outside" / "kept").exists()


def test_bytes_and_files_are_limited_and_hard_links_count_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (3 << 20))
    os.link(tmp_path / "a", tmp_path / "b")
    assert not exceeds([str(tmp_path)], 1)
    (tmp_path / "c").write_bytes(b"x" * (2 << 20))
    assert exceeds([str(tmp_path)], 1)
    assert not exceeds([str(tmp_path)], 2)
    for number in range(FILES):
        (tmp_path / f"{number}").touch()
    assert exceeds([str(tmp_path)], 2)


def test_a_file_without_a_name_counts_while_it_is_open(tmp_path: Path) -> None:
    with open(tmp_path / "a", "wb") as file:
        file.write(b"x" * (5 << 20))
        file.flush()
        (tmp_path / "a").unlink()
        assert not exceeds([str(tmp_path)], 1)
        assert exceeds([str(tmp_path)], 1, os.getpid())
    assert not exceeds([str(tmp_path)], 1, os.getpid())


def test_folders_are_made_where_that_is_possible_and_gone_at_the_end(tmp_path: Path) -> None:
    folders = Folders([str(tmp_path / "missing"), str(tmp_path)])
    with folders.fresh() as one:
        assert Path(one).parent.parent == tmp_path
    changes = (lambda at: Path(at, "file").touch(), lambda at: os.utime(at, (5, 5)), lambda at: os.chmod(at, 0))
    for change in changes:
        with folders.fresh() as used:
            assert used == one, "the last run did not touch it"
            change(used)
        with folders.fresh() as other:
            assert other != one
        one = other
    folders.end()
    assert os.listdir(tmp_path) == []


def test_where_none_can_be_made_the_error_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"missing: No such file or directory.*TMPDIR"):
        Folders([str(tmp_path / "missing")])


def test_places_of_sandboxes_that_were_killed_are_removed_and_those_in_use_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_STALE_S", -1.0)
    (tmp_path / "grpo-programs-0" / "left").mkdir(parents=True)
    (tmp_path / "grpo-programs-1").mkdir()
    held = os.open(tmp_path / "grpo-programs-1", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    (tmp_path / "other").mkdir()
    folders = Folders([str(tmp_path)])
    assert sorted(os.listdir(tmp_path)) == sorted(["grpo-programs-1", "other", os.path.basename(folders.place)])
    os.close(held)
    folders.end()
