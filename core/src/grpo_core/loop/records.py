"""What a run writes down: metrics.jsonl, one line a step; completions/step-000012.jsonl, one line a completion; and
probes/step-000012.jsonl, one line an answer to a probe prompt.

All are cut back to the checkpoint when a run is resumed, so every step stands in them once. A disk that is full does
not end the run: lines of metrics wait until there is room, completions and probes of such a step are lost, and both are
said.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from grpo_core.errors import CheckpointError
from grpo_core.loop.lines import LineFile, encode
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.types import EvaluationReport, Failed, Outcome, ScoredGroup, StepReport

__all__ = ["NoRecords", "Records", "completion_row", "evaluations_of", "read_metrics"]

logger = logging.getLogger("grpo_core")


class Records:
    """Appends to the files of a run. Before the first step a folder that cannot be written is a `CheckpointError`."""

    def __init__(self, run_dir: Path) -> None:
        self._metrics = run_dir / "metrics.jsonl"
        self._lines = LineFile(self._metrics)
        self._completions = run_dir / "completions"
        self._probes = run_dir / "probes"
        self._warned: set[str] = set()
        with _writing(run_dir):
            for folder in (self._completions, self._probes):
                folder.mkdir(parents=True, exist_ok=True)
            self._metrics.touch()

    def write_plan(self, plan: LaunchPlan) -> None:
        """Write plan.json: what the run follows from here on."""
        with _writing(self._metrics.parent):
            plan.write(self._metrics.parent)

    def cut_back(self, step: int) -> None:
        """Forget everything after `step`, lines that a kill left half written included."""
        with _writing(self._metrics.parent):
            self._cut_back(step)

    def _cut_back(self, step: int) -> None:
        kept = [line for line in read_metrics(self._metrics) if isinstance(line["step"], int) and line["step"] <= step]
        aside = self._metrics.with_suffix(".partial")
        aside.write_bytes(encode("".join(map(_line, kept))))
        aside.replace(self._metrics)
        for path in [*self._completions.glob("step-*.jsonl"), *self._probes.glob("step-*.jsonl")]:
            if int(path.stem.removeprefix("step-")) > step:
                path.unlink()

    def write_step(self, report: StepReport) -> None:
        """Record a step: its completions first, so that a step in metrics.jsonl has them."""
        self._write(self._completions / f"step-{report.step:06d}.jsonl", completion_rows(report))
        evaluation = dict(report.evaluation.metrics) if report.evaluation else {}
        self._append({"step": report.step, **report.metrics, **evaluation})

    def write_evaluation(self, report: EvaluationReport) -> None:
        """Record an evaluation made before the first step."""
        self._append({"step": report.step, **report.metrics})

    def write_probes(self, step: int, rows: Iterable[Mapping[str, object]]) -> None:
        """Record the answers to the probe prompts after a step; 0: before the first."""
        self._write(self._probes / f"step-{step:06d}.jsonl", rows)

    def rows(self) -> list[dict[str, object]]:
        """The lines of metrics.jsonl."""
        return read_metrics(self._metrics)

    def finish(self) -> None:
        """Write what waits; raises `CheckpointError` when there is still no room for it."""
        self._lines.flush()
        if self._lines.problem is not None:
            raise CheckpointError(
                f"{self._metrics} lacks the last {self._lines.waiting} lines: {_reason(self._lines.problem)}",
                hint="free disk space before the next run",
            )

    def _append(self, row: Mapping[str, object]) -> None:
        self._lines.add(_line(row))
        if self._lines.problem is not None:
            self._warn("metrics", f"{self._metrics} cannot be written", "its lines wait", self._lines.problem)

    def _write(self, path: Path, rows: Iterable[Mapping[str, object]]) -> None:
        data = encode("".join(map(_line, rows)))
        try:
            path.write_bytes(data)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            self._warn(path.parent.name, f"{path} cannot be written", "files like it are lost", error)

    def _warn(self, what: str, problem: str, consequence: str, error: OSError) -> None:
        """Say it once for each kind of file: later steps meet the same."""
        if what not in self._warned:
            self._warned.add(what)
            logger.warning("%s: %s; the run goes on, %s until there is room", problem, _reason(error), consequence)


class NoRecords:
    """What ranks other than the first write down."""

    def write_plan(self, plan: LaunchPlan) -> None:
        """Rank 0 does."""

    def cut_back(self, step: int) -> None:
        """Nothing is there."""

    def write_step(self, report: StepReport) -> None:
        """Rank 0 does."""

    def write_evaluation(self, report: EvaluationReport) -> None:
        """Rank 0 does."""

    def write_probes(self, step: int, rows: Iterable[Mapping[str, object]]) -> None:
        """Rank 0 does; here rows are made all the same, since all ranks answer."""
        for _ in rows:
            pass

    def rows(self) -> list[dict[str, object]]:
        """Rank 0 has them."""
        return []

    def finish(self) -> None:
        """Nothing waits."""


def read_metrics(path: Path) -> list[dict[str, object]]:
    """All whole lines of a metrics.jsonl; none when there is no such file."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break  # a line that a kill cut off is the last one
    return rows


def evaluations_of(rows: Iterable[Mapping[str, object]]) -> list[EvaluationReport]:
    """The evaluations in rows of metrics.jsonl, oldest first."""
    found = []
    for row in rows:
        metrics = {name: value for name, value in row.items() if name.startswith("eval/") and isinstance(value, float)}
        if metrics and isinstance(row["step"], int):
            found.append(EvaluationReport(step=row["step"], metrics=metrics))
    return found


def completion_rows(report: StepReport) -> Iterator[dict[str, object]]:
    """One row a completion: what was asked, what came back, what it was worth."""
    for scored, advantages in zip(report.groups, report.advantages, strict=True):
        for index, advantage in enumerate(advantages):
            yield {"step": report.step, **completion_row(scored, index), "advantage": advantage}


def completion_row(scored: ScoredGroup, index: int) -> dict[str, object]:
    """What was asked of completion `index` of a group, what came back, and what it was worth."""
    completion = scored.group.completions[index]
    scores = {name: _plain(outcomes[index]) for name, outcomes in scored.outcomes.items()}
    failures = {
        name: outcomes[index].reason  # type: ignore[union-attr]
        for name, outcomes in scored.outcomes.items()
        if isinstance(outcomes[index], Failed)
    }
    return {
        "sample_id": scored.group.sample.id,
        "member": index,
        "prompt": scored.group.request.prompt_text,
        "completion": completion.text,
        "tokens": len(completion.token_ids),
        "finish_reason": str(completion.finish_reason),
        "policy_version": completion.policy_version,
        "scores": scores,
        "failures": failures,
        "total": scored.totals[index],
        "records": {name: values[index] for name, values in scored.records.items()},
        "columns": dict(scored.group.sample.columns),
    }


def _plain(outcome: Outcome) -> float | None:
    return None if isinstance(outcome, Failed) else outcome


@contextlib.contextmanager
def _writing(run_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{run_dir} cannot be written: {_reason(error)}", hint="free disk space, or make the folder writable"
        ) from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"
