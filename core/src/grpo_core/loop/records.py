"""What a run writes down: metrics.jsonl, one line a step; completions/step-000012.jsonl, one line a completion; and
probes/step-000012.jsonl, one line an answer to a probe prompt. Both name the images of their prompts: thumbnails.py.

All are cut back to the checkpoint when a run is resumed, so every step stands in them once. A disk that is full does
not end the run: lines of metrics wait until there is room, completions and probes of such a step are lost, and both are
said. Nor does a folder that somebody removes meanwhile: what is known of it is written again, and the run's error is
what is missing.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grpo_core.errors import CheckpointError, DataError, UsageError
from grpo_core.loop.lines import LineFile, encode
from grpo_core.loop.lock import RunLock
from grpo_core.loop.thumbnails import IMAGES_FOLDER, Thumbnails, allowance
from grpo_core.recipe.folder import PLAN_FILE, step_files_in
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.report.lines import Line, lines_of
from grpo_core.types import EvaluationReport, Failed, ImageRef, Outcome, ScoredGroup, StepReport
from grpo_core.types.sample import PLACEHOLDER

__all__ = ["FolderReplacedError", "NoRecords", "Records", "completion_row", "evaluations_of", "read_metrics"]

logger = logging.getLogger("grpo_core")

METRICS_FILE = "metrics.jsonl"
_MOST_TOLD = 5


class FolderReplacedError(CheckpointError):
    """Another run has the folder: nothing of this one may be written there any more."""


class Records:
    """Appends to the files of a run. Before the first step a folder that cannot be written is a `CheckpointError`."""

    def __init__(self, run_dir: Path, lock: RunLock | None = None) -> None:
        """`lock` tells when the folder is no more what it was; None: nobody looks."""
        self._run_dir, self._lock = run_dir, lock
        self._metrics = run_dir / METRICS_FILE
        self._lines = LineFile(self._metrics)
        self._completions = run_dir / "completions"
        self._probes = run_dir / "probes"
        self._thumbnails = Thumbnails(run_dir, self._warn_of_image)
        self._placeholder: str | None = None
        self._plan: LaunchPlan | None = None
        self._last_step = 0
        self._lost: str | None = None
        self._warned: set[str] = set()
        with _writing(run_dir):
            self._make()

    def write_plan(self, plan: LaunchPlan) -> None:
        """Write plan.json: what the run follows from here on."""
        self._plan = plan
        with _writing(self._run_dir):
            plan.write(self._run_dir)

    def show_images_as(self, placeholder: str | None) -> None:
        """`placeholder` is the model's own text for an image; records have `<image>`. None: it reads text only."""
        self._placeholder = placeholder

    def cut_back(self, step: int) -> None:
        """Forget everything after `step`, and what a kill left half written. Lines that are damaged otherwise go to
        metrics.damaged, and that is said."""
        with _writing(self._run_dir):
            good, damaged = _read(self._metrics)
            if damaged:
                with self._metrics.with_suffix(".damaged").open("ab") as file:
                    file.writelines(line.data for line in damaged)
                logger.warning("%s; kept apart in %s", _complaint(self._metrics, damaged), file.name)
            self._lines.begin(line.data for line in good if _step(line) <= step)
            for folder in (self._completions, self._probes):
                later = [path for at, path in step_files_in(folder).items() if at > step]
                for path in [*later, *folder.glob("*.partial")]:
                    path.unlink()
            for path in (self._run_dir / IMAGES_FOLDER).glob("*.partial"):
                path.unlink()

    def write_step(self, report: StepReport) -> None:
        """Record a step: its completions first, so that a step in metrics.jsonl has them."""
        self._look()
        rows = self._with_images(completion_rows(report), most=allowance(report.step, report.total_steps))
        self._write(self._completions / f"step-{report.step:06d}.jsonl", rows)
        evaluation = dict(report.evaluation.metrics) if report.evaluation else {}
        self._append({"step": report.step, **report.metrics, **evaluation})
        self._last_step = report.step

    def write_evaluation(self, report: EvaluationReport) -> None:
        """Record an evaluation made before the first step."""
        self._look()
        self._append({"step": report.step, **report.metrics})

    def add_evaluation(self, report: EvaluationReport) -> None:
        """Record the evaluation of the last step, which stands there without one."""
        rows = self.rows()
        last = rows.pop() if rows and rows[-1]["step"] == report.step else {"step": report.step}
        with _writing(self._run_dir):
            self._lines.begin([*self._lines.lines[: len(rows)], encode(_line({**last, **report.metrics}))])

    def has_probes(self, step: int) -> bool:
        """Whether the answers to the probe prompts after a step are recorded."""
        return (self._probes / f"step-{step:06d}.jsonl").is_file()

    def write_probes(self, step: int, rows: Iterable[Mapping[str, object]]) -> None:
        """Record the answers to the probe prompts after a step; 0: before the first."""
        made = list(rows)
        self._look()
        self._write(self._probes / f"step-{step:06d}.jsonl", self._with_images(made, most=None))

    def rows(self) -> list[dict[str, object]]:
        """The lines of metrics.jsonl."""
        return [json.loads(line) for line in self._lines.lines]

    def finish(self) -> None:
        """Write what waits; raises `CheckpointError` when there is still no room for it, or the folder was lost on the
        way."""
        self._look()
        self._lines.flush()
        if self._lines.problem is not None:
            raise CheckpointError(
                f"{self._metrics} lacks the last {self._lines.waiting} lines: {_reason(self._lines.problem)}",
                hint="free disk space before the next run",
            )
        if self._lost is not None:
            raise CheckpointError(
                f"{self._run_dir} {self._lost}: it lacks the completions, probes and checkpoints from before that; "
                f"{PLAN_FILE}, {METRICS_FILE} and all that came later are there",
                hint="bring the rest back from where the folder was moved to, if it was",
            )

    def _look(self) -> None:
        """Notice that the folder was removed, moved or replaced, and make it anew as far as it is known. Raises
        `CheckpointError` when it is another run's now."""
        if self._lock is None or self._lock.is_held():
            return
        own, there = self._plan and self._plan.text(), _text(self._run_dir / PLAN_FILE)
        if there not in (None, own):
            raise self._replaced("has another run in it")
        try:
            self._make()
            self._lock.take_again()
            if self._plan is not None:
                self._plan.write(self._run_dir)
            self._lines.begin(self._lines.lines)
        except UsageError as error:
            raise self._replaced(error.message) from error
        except OSError as error:
            self._warn("folder", f"{self._run_dir} is gone and cannot be made anew", "nothing is written", error)
            return
        if there is not None:
            logger.warning("somebody removed the lock of %s: it is taken again", self._run_dir)
        elif self._lost is None:
            self._lost = f"was removed or moved while the run went on, after step {self._last_step}"
            logger.warning("%s %s: the run goes on, in a folder made anew", self._run_dir, self._lost)

    def _replaced(self, how: str) -> CheckpointError:
        return FolderReplacedError(
            f"{self._run_dir} was replaced while the run went on, after step {self._last_step}: {how}",
            hint="what this run wrote is where its folder was moved to, if it was; `grpoctl resume` goes on there",
        )

    def _make(self) -> None:
        for folder in (self._completions, self._probes):
            folder.mkdir(parents=True, exist_ok=True)
        self._metrics.touch()

    def _with_images(self, rows: Iterable[Mapping[str, object]], *, most: int | None) -> list[Mapping[str, object]]:
        """Rows that name their images by digest, `<image>` once for each in the prompt; the first `most` images are
        kept as thumbnails."""
        made = list(rows)
        names = self._thumbnails.keep((image for row in made for image in _images(row)), most=most)
        return [
            {**row, "prompt": self._shown(str(row["prompt"])), "images": [names[image] for image in images]}
            if (images := _images(row))
            else row
            for row in made
        ]

    def _shown(self, prompt: str) -> str:
        return prompt.replace(self._placeholder, PLACEHOLDER) if self._placeholder else prompt

    def _append(self, row: Mapping[str, object]) -> None:
        self._lines.add(_line(row))
        if self._lines.problem is not None:
            self._warn("metrics", f"{self._metrics} cannot be written", "its lines wait", self._lines.problem)

    def _write(self, path: Path, rows: Iterable[Mapping[str, object]]) -> None:
        data = encode("".join(map(_line, rows)))
        aside = path.with_suffix(".partial")
        try:
            aside.write_bytes(data)
            aside.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                aside.unlink()
            self._warn(path.parent.name, f"{path} cannot be written", "files like it are lost", error)

    def _warn_of_image(self, problem: str, consequence: str, error: OSError | DataError) -> None:
        """Say once for each kind of problem what it costs."""
        if consequence not in self._warned:
            self._warned.add(consequence)
            reason = f": {_reason(error)}" if isinstance(error, OSError) else ""
            logger.warning("%s%s; the run goes on, %s", problem, reason, consequence)

    def _warn(self, what: str, problem: str, consequence: str, error: OSError) -> None:
        """Say it once for each kind of file: later steps meet the same."""
        if what not in self._warned:
            self._warned.add(what)
            logger.warning("%s: %s; the run goes on, %s until there is room", problem, _reason(error), consequence)


class NoRecords:
    """What ranks other than the first write down."""

    def write_plan(self, plan: LaunchPlan) -> None:
        """Rank 0 does."""

    def show_images_as(self, placeholder: str | None) -> None:
        """Rank 0 shows them."""

    def cut_back(self, step: int) -> None:
        """Nothing is there."""

    def write_step(self, report: StepReport) -> None:
        """Rank 0 does."""

    def write_evaluation(self, report: EvaluationReport) -> None:
        """Rank 0 does."""

    def add_evaluation(self, report: EvaluationReport) -> None:
        """Rank 0 does."""

    def has_probes(self, step: int) -> bool:
        """Rank 0 knows."""
        return False

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
    """All good lines of a metrics.jsonl, each step once; none when there is no such file. Damaged ones are said, but
    for a last one that a kill cut off."""
    try:
        good, damaged = _read(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {_reason(error)}", hint="bring the file back") from error
    if damaged:
        logger.warning("%s; they are left out", _complaint(path, damaged))
    return [line.row for line in good if line.row is not None]


def _read(path: Path) -> tuple[list[Line], list[Line]]:
    """Good lines, and those that are damaged; of a step that is there twice the later line counts."""
    by_step: dict[int, Line] = {}
    damaged = []
    for line in lines_of(path) if path.exists() else ():
        if line.row is None:
            damaged += [] if line.is_cut else [line]
        elif (step := _step(line)) < 0:
            damaged.append(replace(line, problem=" has no step"))
        else:
            if step in by_step:
                damaged.append(replace(by_step.pop(step), problem=f" is of step {step}, which comes again"))
            by_step[step] = replace(line, data=line.data.removesuffix(b"\n") + b"\n")
    return list(by_step.values()), damaged


def _step(line: Line) -> int:
    """The step of a line; -1: it has none."""
    step = None if line.row is None else line.row.get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) and step >= 0 else -1


def _complaint(path: Path, damaged: Sequence[Line]) -> str:
    told = ", ".join(f"line {line.number}{line.problem}" for line in damaged[:_MOST_TOLD])
    more = f" and {len(damaged) - _MOST_TOLD} more" if len(damaged) > _MOST_TOLD else ""
    return f"{path} is damaged: {told}{more}"


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
    """What was asked of completion `index` of a group, what came back, and what it was worth. `images`, where there
    are some, are references; `Records` writes their digests."""
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
        **({"images": scored.group.sample.images} if scored.group.sample.images else {}),
    }


def _images(row: Mapping[str, object]) -> tuple[ImageRef, ...]:
    images = row.get("images", ())
    assert isinstance(images, tuple)
    return images


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


def _text(path: Path) -> str | None:
    """Of a file; None: it is not there, or is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"
