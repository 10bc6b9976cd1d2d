"""What a run keeps, and what happens when it cannot be written."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.errors import CheckpointError, RecipeError
from grpo_core.loop.checkpoint import LoopState
from grpo_core.loop.keeping import Keeper, best_of, check_best, is_better
from grpo_core.loop.parts import Parts
from grpo_core.recipe.folder import checkpoints_of
from grpo_core.recipe.resolve import resolve
from grpo_core.types import EvaluationReport
from tests.core.recipe.fakes import fake_host, recipe_of


class FakeTrainer:
    """Writes its one number, or meets a full disk."""

    def __init__(self) -> None:
        self.number = 0
        self.full = False

    def save(self, directory: Path) -> None:
        (directory / "number").write_text(str(self.number), encoding="utf-8")
        if self.full:
            raise OSError(28, "No space left on device")

    export = save


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def keeper(
    run_dir: Path, trainer: FakeTrainer, *rows: dict[str, object], clock: FakeClock | None = None, **run: Any
) -> Keeper:
    plan = resolve(recipe_of(run=run), {}, host=fake_host())
    parts = Parts(
        plan=plan,
        run_dir=run_dir,
        prepared=None,  # type: ignore[arg-type]
        scorer=None,  # type: ignore[arg-type]
        rollout=None,  # type: ignore[arg-type]
        trainer=trainer,  # type: ignore[arg-type]
        weights=None,  # type: ignore[arg-type]
    )
    return Keeper(parts, saved_step=0, read_rows=lambda: list(rows), clock_s=clock or FakeClock())


def state(step: int) -> LoopState:
    return LoopState(step=step, version=step, zero_reward_steps=0, fingerprint="abc")


def evaluation(step: int, accuracy: float) -> EvaluationReport:
    return EvaluationReport(step=step, metrics={"eval/prompts": 8.0, "eval/accuracy": accuracy})


def test_a_checkpoint_that_fails_is_said_and_the_next_one_is_tried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = FakeTrainer()
    keeping = keeper(tmp_path, trainer)
    trainer.full = True
    with caplog.at_level(logging.WARNING, logger="grpo_core"):
        keeping.save(state(5), good_step=0)
    (told,) = [record.getMessage() for record in caplog.records]
    assert "step 5: " in told
    assert "step-000005 cannot be written: No space left on device; the run goes on. To do: free disk space" in told
    trainer.full = False
    keeping.save(state(10), good_step=0)
    keeping.require_all()
    assert [path.name for path in checkpoints_of(tmp_path)] == ["step-000010"]


def test_what_is_missing_at_the_end_is_an_error_that_names_all_of_it(tmp_path: Path) -> None:
    trainer = FakeTrainer()
    keeping = keeper(tmp_path, trainer)
    trainer.full = True
    keeping.save(state(5), good_step=0)
    keeping.finish(5, None, None)
    with pytest.raises(CheckpointError) as caught:
        keeping.require_all()
    assert "step-000005 cannot be written" in caught.value.message
    assert "final cannot be written" in caught.value.message
    assert f"then `grpoctl resume {tmp_path}` goes on" in str(caught.value.hint)


def test_the_final_model_is_written_even_when_the_checkpoint_was_not(tmp_path: Path) -> None:
    trainer = FakeTrainer()
    keeping = keeper(tmp_path, trainer)
    trainer.full = True
    keeping.save(state(5), good_step=0)
    trainer.full = False
    keeping.finish(5, None, None)
    assert "These weights were not evaluated" in (tmp_path / "final" / "README.md").read_text(encoding="utf-8")
    with pytest.raises(CheckpointError, match="step-000005"):
        keeping.require_all()


def test_a_step_has_one_checkpoint(tmp_path: Path) -> None:
    trainer = FakeTrainer()
    keeping = keeper(tmp_path, trainer)
    keeping.save(state(5), good_step=0)
    trainer.number = 7
    keeping.save(state(5), good_step=0)
    assert (checkpoints_of(tmp_path)[0] / "trainer" / "number").read_text() == "0"


def best_number(run_dir: Path) -> str:
    return (run_dir / "best" / "number").read_text(encoding="utf-8")


def test_the_best_model_is_the_one_with_the_best_value(tmp_path: Path) -> None:
    trainer, first = FakeTrainer(), evaluation(0, 0.3)
    keeping = keeper(tmp_path, trainer, {"step": 0, **first.metrics}, save_best="eval/accuracy")
    for step, accuracy, exists in ((2, 0.3, False), (4, 0.5, True), (6, 0.4, True), (8, 0.6, True), (10, 0.6, True)):
        trainer.number = step
        keeping.keep_best(evaluation(step, accuracy), first)
        assert (tmp_path / "best").exists() == exists
    assert best_number(tmp_path) == "8"
    assert json.loads((tmp_path / "best" / "best.json").read_text()) == {
        "step": 8,
        "metric": "eval/accuracy",
        "value": 0.6,
    }
    assert "the best `eval/accuracy`" in (tmp_path / "best" / "README.md").read_text()


def test_lower_may_be_better(tmp_path: Path) -> None:
    trainer = FakeTrainer()
    settings = {"save_best": "eval/accuracy", "save_best_when": "lower"}
    keeping = keeper(tmp_path, trainer, {"step": 0, "eval/accuracy": 0.5}, **settings)
    for step, value in ((1, 0.6), (2, 0.4)):
        trainer.number = step
        keeping.keep_best(evaluation(step, value), None)
    assert best_number(tmp_path) == "2"


def test_a_resumed_run_knows_its_best(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"step": 0, "eval/accuracy": 0.1}, {"step": 4, "eval/accuracy": 0.8}]
    keeping = keeper(tmp_path, FakeTrainer(), *rows, save_best="eval/accuracy")
    keeping.keep_best(evaluation(6, 0.7), None)
    assert not (tmp_path / "best").exists()


def test_a_best_model_that_could_not_be_written_does_not_bar_a_lesser_one(tmp_path: Path) -> None:
    trainer = FakeTrainer()
    keeping = keeper(tmp_path, trainer, save_best="eval/accuracy")
    trainer.full = True
    keeping.keep_best(evaluation(2, 0.9), None)
    trainer.full, trainer.number = False, 4
    keeping.keep_best(evaluation(4, 0.8), None)
    keeping.require_all()
    assert best_number(tmp_path) == "4"


def test_an_evaluation_without_the_metric_is_passed_over(tmp_path: Path) -> None:
    keeping = keeper(tmp_path, FakeTrainer(), save_best="eval/pass@2")
    keeping.keep_best(evaluation(2, 0.9), None)
    assert not (tmp_path / "best").exists()


def test_a_metric_that_no_evaluation_has_is_refused_after_the_first() -> None:
    check_best(None, evaluation(0, 0.5))
    check_best("eval/accuracy", evaluation(0, 0.5))
    with pytest.raises(RecipeError, match=r"run.save_best: .* no 'eval/acuracy'; did you mean 'eval/accuracy'\?"):
        check_best("eval/acuracy", evaluation(0, 0.5))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_the_best_of_rows_is_their_extreme(values: list[float]) -> None:
    rows = [{"step": step, "eval/x": value} for step, value in enumerate(values)] + [{"step": 99, "eval/x": None}]
    assert best_of(rows, "eval/x", "higher") == max(values)
    assert best_of(rows, "eval/x", "lower") == min(values)
    assert best_of(rows, "eval/y", "lower") is None
    assert not is_better(max(values), best_of(rows, "eval/x", "higher"), "higher")


def steps_kept(run_dir: Path) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in checkpoints_of(run_dir)]


def train_for(keeping: Keeper, clock: FakeClock, *, steps: int, step_s: float, good_step: int = 0) -> list[int]:
    """The steps before which it was time for a checkpoint, which was written."""
    asked = []
    for done in range(steps):
        if keeping.is_time():
            keeping.save(state(done), good_step=good_step)
            asked.append(done)
        clock.now_s += step_s
    return asked


def test_no_half_hour_passes_without_a_checkpoint(tmp_path: Path) -> None:
    clock = FakeClock()
    asked = train_for(keeper(tmp_path, FakeTrainer(), clock=clock), clock, steps=100, step_s=60.0)
    assert asked == [30, 60, 90]
    clock = FakeClock()
    asked = train_for(keeper(tmp_path / "slow", FakeTrainer(), clock=clock), clock, steps=6, step_s=1200.0)
    assert asked == [1, 2, 3, 4, 5]  # another step would end after 40 minutes


def test_minutes_count_from_the_last_checkpoint_of_any_kind(tmp_path: Path) -> None:
    clock = FakeClock()
    keeping = keeper(tmp_path, FakeTrainer(), clock=clock, save_minutes=10)
    keeping.is_time()
    clock.now_s += 540.0
    keeping.save(state(9), good_step=0)
    assert not keeping.is_time()
    clock.now_s += 60.0
    assert not keeping.is_time()


def test_null_minutes_are_no_minutes(tmp_path: Path) -> None:
    clock = FakeClock()
    assert train_for(keeper(tmp_path, FakeTrainer(), clock=clock, save_minutes=None), clock, steps=9, step_s=1e4) == []
    assert train_for(keeper(tmp_path, FakeTrainer(), clock=clock, save_steps=50), clock, steps=9, step_s=1e4) == []


def test_of_checkpoints_by_the_clock_the_newest_two_and_the_last_good_one_are_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    keeping = keeper(tmp_path, FakeTrainer(), clock=clock)
    train_for(keeping, clock, steps=8, step_s=1800.0, good_step=3)
    assert steps_kept(tmp_path) == [3, 6, 7]


def test_checkpoints_that_were_asked_for_stay_beside_those_by_the_clock(tmp_path: Path) -> None:
    keeping = keeper(tmp_path, FakeTrainer(), save_steps=10, save_minutes=30)
    for step in (3, 7, 10, 13, 17, 20, 23):
        keeping.save(state(step), good_step=0)
    assert steps_kept(tmp_path) == [10, 17, 20, 23]


def test_before_the_first_step_there_is_nothing_to_write(tmp_path: Path) -> None:
    keeper(tmp_path, FakeTrainer()).save(state(0), good_step=0)
    assert steps_kept(tmp_path) == []


def test_the_last_checkpoint_of_a_failing_run_is_tried_where_an_earlier_one_failed(tmp_path: Path) -> None:
    trainer = FakeTrainer()
    keeping = keeper(tmp_path, trainer)
    trainer.full = True
    keeping.save(state(5), good_step=0)
    with pytest.raises(CheckpointError, match="No space left"):
        keeping.save_last(state(5), good_step=0)
    assert keeping.saved_step == 0
    trainer.full = False
    keeping.save_last(state(5), good_step=0)
    assert keeping.saved_step == 5
