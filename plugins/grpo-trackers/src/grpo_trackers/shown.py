"""What every tracker shows of a run, as plain values: its settings, the numbers of a step, some completions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from grpo_core.api import RunStarted, StepReport

__all__ = ["COLUMNS", "completion_rows", "flat", "folder_of", "numbers_of", "read_note", "settings_of", "write_note"]

COLUMNS = ("step", "sample", "prompt", "completion", "total", "scores", "advantage", "tokens", "finish")
"""Of the table of completions."""
MOST_COMPLETIONS = 16
"""In one table: a tracker is for a look; the run's folder has them all."""


def settings_of(started: RunStarted) -> dict[str, object]:
    """The merged recipe, with the versions of what made the run."""
    recipe = started.plan.get("recipe")
    settings = dict(recipe) if isinstance(recipe, Mapping) else {}
    return {**settings, "grpo_core": started.plan.get("core_version"), "total_steps": started.total_steps}


def flat(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """(dotted path, value) of nested settings; lists are one value."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def numbers_of(report: StepReport) -> dict[str, float]:
    """The metrics of a report and of its evaluation; what did not apply is left out."""
    metrics = {**report.metrics, **(report.evaluation.metrics if report.evaluation else {})}
    return {name: value for name, value in metrics.items() if value is not None}


def completion_rows(report: StepReport) -> list[list[object]]:
    """Up to 16 completions of the first groups, in the order of `COLUMNS`."""
    rows: list[list[object]] = []
    for scored, advantages in zip(report.groups, report.advantages, strict=True):
        for index, completion in enumerate(scored.group.completions):
            outcomes = {name: values[index] for name, values in scored.outcomes.items()}
            scores = {name: value for name, value in outcomes.items() if value is None or isinstance(value, float)}
            rows.append(
                [
                    report.step,
                    scored.group.sample.id,
                    scored.group.sample.messages[-1].content,
                    completion.text,
                    scored.totals[index],
                    json.dumps(scores),
                    advantages[index],
                    len(completion.token_ids),
                    str(completion.finish_reason),
                ]
            )
    return rows[:MOST_COMPLETIONS]


def folder_of(run_dir: Path) -> Path:
    """Where trackers keep what they need to go on with the same run after a resume."""
    folder = run_dir / "trackers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def read_note(run_dir: Path, tracker: str) -> dict[str, str]:
    """What `write_note` wrote when the run began; empty when it has not begun."""
    path = folder_of(run_dir) / f"{tracker}.json"
    if not path.exists():
        return {}
    note = json.loads(path.read_text(encoding="utf-8"))
    return {str(key): str(value) for key, value in note.items()}


def write_note(run_dir: Path, tracker: str, **values: str) -> None:
    """Keep which run of the tracker this is, in the run's folder."""
    path = folder_of(run_dir) / f"{tracker}.json"
    aside = path.with_suffix(".partial")
    aside.write_text(json.dumps(values) + "\n", encoding="utf-8")
    aside.replace(path)  # a kill leaves the one before
