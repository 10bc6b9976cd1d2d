"""What a run keeps: checkpoints, the best model in `best/`, the last one in `final/`.

A write that fails does not end the run, which holds what is worth more: it is said, the next one is tried when it is
due, and what is still missing at the end is the run's error.

Place in the flow: `train` asks whether it is time; `checkpoint` writes; `card` says how the model was made.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Literal

from grpo_core.errors import CheckpointError, Problem, RecipeError
from grpo_core.loop.card import Measured, Row, model_card
from grpo_core.loop.checkpoint import LoopState, export_model, save_checkpoint
from grpo_core.loop.parts import Parts
from grpo_core.recipe.complaints import did_you_mean
from grpo_core.recipe.saving import kept_count, kept_whatever
from grpo_core.types import EvaluationReport

__all__ = ["Keeper", "best_of", "check_best", "is_better"]

logger = logging.getLogger("grpo_core")

Direction = Literal["higher", "lower"]


class Keeper:
    """Writes for one run. Every rank has one and calls the same methods in the same order."""

    def __init__(
        self,
        parts: Parts,
        *,
        saved_step: int,
        read_rows: Callable[[], Sequence[Row]],
        held: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`saved_step` is the step of the newest checkpoint, 0 when there is none; `read_rows` reads metrics.jsonl,
        which only rank 0 needs to have; `held` is the context in which a checkpoint is not cut off."""
        self.saved_step = saved_step
        self.is_writing = False
        """A checkpoint; it stays so where that failed in a way that nobody foresaw."""
        self._parts = parts
        self._run = parts.plan.recipe.run
        self._tried_step = saved_step
        self._read_rows = read_rows
        self._held = held
        self._clock_s = clock_s
        self._saved_s = self._looked_s = clock_s()
        self._best = best_of(read_rows(), self._run.save_best, self._run.save_best_when)
        self._missing: dict[str, CheckpointError] = {}

    def is_time(self) -> bool:
        """Whether `run.save_minutes` would have passed by the end of the next step, if that takes as long as the one
        before it; asked before each step."""
        now_s = self._clock_s()
        step_s, self._looked_s = now_s - self._looked_s, now_s
        minutes = self._run.save_minutes
        return minutes is not None and now_s + step_s - self._saved_s > 60.0 * minutes

    def save(self, state: LoopState, *, good_step: int) -> None:
        """Write a checkpoint, unless this step has one or could not have one; before the first step there is nothing to
        write."""
        if state.step not in (0, self._tried_step):
            self._try("checkpoint", partial(self._save, state, good_step), state.step)

    def save_last(self, state: LoopState, *, good_step: int) -> None:
        """Write a checkpoint of a run that ends here; raises `CheckpointError` when that cannot be done."""
        self._save(state, good_step)

    def _save(self, state: LoopState, good_step: int) -> None:
        parts, run = self._parts, self._run
        self._tried_step, self._saved_s = state.step, self._clock_s()
        with self._held(), self._writing():
            save_checkpoint(
                parts.run_dir,
                state,
                parts.trainer,
                keep=kept_count(run),
                kept_whatever=lambda step: kept_whatever(step, run),
                good_step=good_step,
                plan=parts.plan,
                ranks=parts.ranks,
            )
            self.saved_step = state.step

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.is_writing = True
        try:
            yield
        except CheckpointError:
            self.is_writing = False
            raise
        self.is_writing = False

    def keep_best(self, evaluation: EvaluationReport, before: EvaluationReport | None) -> None:
        """Write the model to `best/` when this evaluation is better than all before it."""
        name = self._run.save_best
        value = evaluation.metrics.get(name) if name is not None else None
        if value is None:
            return
        ranks, when = self._parts.ranks, self._run.save_best_when
        if not ranks.from_first(is_better(value, self._best, when)):
            return
        note = {"step": evaluation.step, "metric": name, "value": value}

        def write() -> None:
            card = self._card(evaluation.step, before, evaluation, chosen_by=name)
            self._export("best", {"README.md": card, "best.json": json.dumps(note) + "\n"})

        if self._try("best", write, evaluation.step):
            self._best = value

    def finish(self, step: int, before: EvaluationReport | None, after: EvaluationReport | None) -> None:
        """Write the model to `final/`."""

        def write() -> None:
            self._export("final", {"README.md": self._card(step, before, after)})

        self._try("final", write, step)

    def require_all(self) -> None:
        """Raise `CheckpointError` when something could not be written, and was not written later either."""
        if self._missing:
            first, *others = self._missing.values()
            message = "; ".join([first.message, *(error.message for error in others)])
            hint = f"{first.hint}; then `grpoctl resume {self._parts.run_dir}` goes on from the last checkpoint"
            raise CheckpointError(message, hint=hint)

    def _export(self, folder: str, files: dict[str, str]) -> None:
        export_model(self._parts.run_dir / folder, self._parts.trainer, files, ranks=self._parts.ranks)

    def _card(
        self,
        step: int,
        before: EvaluationReport | None,
        after: EvaluationReport | None,
        *,
        chosen_by: str | None = None,
    ) -> str:
        rows = [row for row in self._read_rows() if isinstance(row["step"], int) and row["step"] <= step]
        measured = Measured(step=step, before=before, after=after, rows=rows, chosen_by=chosen_by)
        return model_card(self._parts.plan, self._parts.run_dir, measured) if self._parts.ranks.is_first else ""

    def _try(self, what: str, write: Callable[[], None], step: int) -> bool:
        try:
            write()
        except CheckpointError as error:
            self._missing[what] = error
            if self._parts.ranks.is_first:
                logger.warning("step %d: %s; the run goes on. To do: %s", step, error.message, error.hint)
            return False
        self._missing.pop(what, None)
        return True


def is_better(value: float, best: float | None, when: Direction) -> bool:
    """Whether a value is better than the best one so far; equal is not better."""
    return best is None or (value > best if when == "higher" else value < best)


def best_of(rows: Iterable[Row], name: str | None, when: Direction) -> float | None:
    """The best value of a metric in rows of metrics.jsonl; None when no row has it.

    The evaluation before training counts: a model that is no better than it was is not kept as the best.
    """
    best: float | None = None
    for row in rows:
        value = row.get(name) if name is not None else None
        if isinstance(value, int | float) and is_better(value, best, when):
            best = float(value)
    return best


def check_best(name: str | None, evaluation: EvaluationReport) -> None:
    """Raise `RecipeError` when the first evaluation does not have the metric that chooses the best model."""
    if name is not None and name not in evaluation.metrics:
        known = sorted(evaluation.metrics)
        message = f"the evaluation of this run has no '{name}'; {did_you_mean(name, known)}"
        raise RecipeError([Problem(path="run.save_best", message=message)])
