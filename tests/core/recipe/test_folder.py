"""Names of steps in a run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.recipe.folder import checkpoints_of, is_checkpoint, step_files_in, step_named


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step-000000", 0),
        ("step-000012", 12),
        ("step-1000000", 1_000_000),
        ("step-12", None),
        ("step-0000012", None),
        ("step-garbage", None),
        ("step-", None),
        ("step--00012", None),
        ("step-000012.bak", None),
        ("step-٠٠٠٠١٢", None),
        (f"step-{'9' * 200}", int("9" * 200)),
    ],
)
def test_a_step_is_read_from_names_that_a_run_gives(name: str, step: int | None) -> None:
    assert step_named(name) == step
    assert step_named(f"{name}.jsonl", ".jsonl") == step
    assert step_named(f"{name}.json", ".jsonl") is None


def test_steps_are_in_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("step-1000000", "step-999999", "step-000002", "step-garbage", "other"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    (tmp_path / "checkpoints" / "step-000003").touch()  # a file is no checkpoint
    assert [path.name for path in checkpoints_of(tmp_path)] == ["step-000002", "step-999999", "step-1000000"]
    assert checkpoints_of(tmp_path / "none") == []
    assert list(step_files_in(tmp_path / "checkpoints")) == []


def test_a_checkpoint_that_lost_its_state_is_one_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "step-000002").mkdir(parents=True)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "state.json").touch()
    assert is_checkpoint(tmp_path / "checkpoints" / "step-000002")
    assert is_checkpoint(tmp_path / "copy")
    assert not is_checkpoint(tmp_path)
    assert not is_checkpoint(tmp_path / "checkpoints" / "step-000004")


def test_a_circle_of_links_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    assert not is_checkpoint(tmp_path / "circle")
