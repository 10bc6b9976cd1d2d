"""What is saved when a run fails, and what is said."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import CheckpointError, GrpoError, RewardError
from grpo_core.loop.checkpoint import LoopState
from grpo_core.loop.keeping import Keeper
from grpo_core.loop.parts import Parts
from grpo_core.loop.records import FolderReplacedError
from grpo_core.loop.rescue import rescue, told
from grpo_core.ranks.ranks import ALONE, Ranks
from grpo_core.recipe.folder import checkpoints_of
from grpo_core.recipe.resolve import resolve
from tests.core.recipe.fakes import fake_host, recipe_of
from tests.thread_ranks import ThreadRanks, as_ranks


class FakeTrainer:
    """Writes one number; an update, or a pass over a batch, may fail."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def save(self, directory: Path) -> None:
        if self.error is not None:
            raise self.error
        (directory / "number").write_text("1", encoding="utf-8")

    def update(self, batch: object) -> None:
        raise ValueError("out of memory")

    logprobs = update


class Run:
    """As much of a run as there is when it fails after step 7."""

    def __init__(self, run_dir: Path, ranks: Ranks = ALONE, *, saved_step: int = 0) -> None:
        self.trainer, self.state = FakeTrainer(), LoopState(step=7, version=7, zero_reward_steps=0, fingerprint="abc")
        parts = Parts(
            plan=resolve(recipe_of(), {}, host=fake_host()),
            run_dir=run_dir,
            prepared=None,  # type: ignore[arg-type]
            scorer=None,  # type: ignore[arg-type]
            rollout=None,  # type: ignore[arg-type]
            trainer=self.trainer,  # type: ignore[arg-type]
            weights=None,  # type: ignore[arg-type]
            ranks=ranks,
        )
        self.parts = replace(parts, trainer=parts.calls.around(self.trainer))  # type: ignore[arg-type]
        self.keeper = Keeper(self.parts, saved_step=saved_step, read_rows=list)

    def fails(self, error: BaseException | None = None, *, is_sound: bool = True) -> str:
        """The note on its error."""
        error = error or RewardError("the reward is broken")
        rescue(self.parts, self.keeper, self.state, error, good_step=0, is_sound=is_sound)
        (note,) = error.__notes__
        return note

    def breaks_in(self, name: str) -> None:
        with pytest.raises(ValueError, match="out of memory"):
            getattr(self.parts.trainer, name)("batch")


def saved(run_dir: Path) -> list[str]:
    return [path.name for path in checkpoints_of(run_dir)]


def test_the_last_whole_step_is_saved_and_the_error_says_where_the_run_goes_on(tmp_path: Path) -> None:
    assert Run(tmp_path).fails() == f"`grpoctl resume {tmp_path}` goes on from step 7"
    assert saved(tmp_path) == ["step-000007"]


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), OSError(28, "full"), CheckpointError("full")])
def test_whatever_it_was(tmp_path: Path, error: BaseException) -> None:
    Run(tmp_path).fails(error)
    assert saved(tmp_path) == ["step-000007"]


def test_once_an_update_has_begun_nothing_is_saved(tmp_path: Path) -> None:
    run = Run(tmp_path, saved_step=5)
    run.breaks_in("update")
    assert run.fails() == (
        f"step 7 could not be saved: an update of step 8 had begun; `grpoctl resume {tmp_path}` goes on from step 5"
    )
    assert saved(tmp_path) == []


def test_numbers_that_are_not_sound_are_not_saved(tmp_path: Path) -> None:
    note = Run(tmp_path).fails(is_sound=False)
    assert note == f"step 7 could not be saved: its numbers are not sound; `grpoctl resume {tmp_path}` begins again"
    assert saved(tmp_path) == []


def test_a_trainer_that_breaks_before_the_update_leaves_its_weights_whole(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.breaks_in("logprobs")
    run.fails()
    assert saved(tmp_path) == ["step-000007"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("No space left on device")])
def test_where_saving_fails_too_that_is_a_note(tmp_path: Path, error: Exception) -> None:
    run = Run(tmp_path)
    run.trainer.error = error
    note = run.fails()
    assert note.startswith("step 7 could not be saved: ")
    assert "No space left on device" in note
    assert note.endswith(f"; `grpoctl resume {tmp_path}` begins again")
    assert not list(tmp_path.glob("checkpoints/*"))


def test_a_step_that_is_saved_already_is_not_saved_again(tmp_path: Path) -> None:
    run = Run(tmp_path, saved_step=7)
    assert run.fails() == f"`grpoctl resume {tmp_path}` goes on from step 7"
    assert saved(tmp_path) == []


def test_before_the_first_step_there_is_nothing_to_save(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.state = replace(run.state, step=0)
    assert run.fails() == f"`grpoctl resume {tmp_path}` begins again"
    assert saved(tmp_path) == []


def test_a_fault_in_writing_a_checkpoint_is_not_met_twice(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.trainer.error = ZeroDivisionError("in save")
    with pytest.raises(ZeroDivisionError) as caught:
        run.keeper.save(run.state, good_step=0)
    run.trainer.error = None
    assert run.fails(caught.value).startswith("step 7 could not be saved: the fault is in writing it")
    assert saved(tmp_path) == []


@pytest.mark.parametrize("error", [SystemExit(0), asyncio.CancelledError(), GeneratorExit()])
def test_code_that_ends_the_program_is_a_failure_like_any_other(error: BaseException) -> None:
    failed = told(error)
    assert isinstance(failed, GrpoError)
    assert failed.exit_code == 4
    assert " ends the program: " in failed.message or "code that the run calls ended it: " in failed.message
    for other in (RewardError("broken"), KeyboardInterrupt()):
        assert told(other) is other


def on_ranks(run_dir: Path, break_on: int | None = None, **changes: Any) -> list[str]:
    """The notes of two ranks; `changes` are of the state of rank 1."""

    def on_rank(ranks: ThreadRanks) -> str:
        run = Run(run_dir, ranks, saved_step=5)
        if ranks.rank == break_on:
            run.breaks_in("logprobs")
        if ranks.rank == 1:
            run.state = replace(run.state, **changes)
        return run.fails()

    return as_ranks(2, on_rank)


def test_several_ranks_save_together(tmp_path: Path) -> None:
    assert on_ranks(tmp_path) == [f"`grpoctl resume {tmp_path}` goes on from step 7"] * 2
    assert saved(tmp_path) == ["step-000007"]


def test_a_rank_that_was_cut_off_in_what_all_compute_together_is_an_obstacle_for_all(tmp_path: Path) -> None:
    notes = on_ranks(tmp_path, break_on=1)
    problem = "rank 1 was in the middle of what all ranks compute together"
    where = f"`grpoctl resume {tmp_path}` goes on from step 5"
    assert notes == [f"step 7 could not be saved: {problem}; {where}"] * 2
    assert saved(tmp_path) == []


@pytest.mark.parametrize("changes", [{"step": 6}, {"version": 8}])
def test_ranks_at_different_places_save_nothing(tmp_path: Path, changes: dict[str, int]) -> None:
    notes = on_ranks(tmp_path, **changes)
    assert all("could not be saved: the ranks were not at the same place; " in note for note in notes)
    assert saved(tmp_path) == []


def test_nothing_is_saved_in_a_folder_that_another_run_has_by_now(tmp_path: Path) -> None:
    note = Run(tmp_path).fails(FolderReplacedError("it was replaced"))
    assert note.endswith("could not be saved: the run's folder is no more its own")
    assert saved(tmp_path) == []


def test_a_run_whose_final_model_is_there_goes_on_nowhere(tmp_path: Path) -> None:
    (tmp_path / "final").mkdir()
    run = Run(tmp_path, saved_step=5)
    run.state = replace(run.state, step=5)
    error = CheckpointError("its folder was removed meanwhile")
    rescue(run.parts, run.keeper, run.state, error, good_step=0, is_sound=True)
    assert not hasattr(error, "__notes__")
