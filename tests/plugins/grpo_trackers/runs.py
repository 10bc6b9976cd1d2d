"""What the loop tells a tracker of a small run, and a reader of what wandb writes offline."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grpo_core.types import EvaluationReport, RunOutcome, RunStarted, StepReport
from tests.core.loop.make import scored_group

RECIPE = {"model": {"path": "m"}, "run": {"report_to": ["x"], "seed": 3}}


def started(run_dir: Path, *, first_step: int = 1) -> RunStarted:
    """The first call; a run that begins has an evaluation from before."""
    run_dir.mkdir(parents=True, exist_ok=True)
    return RunStarted(
        run_dir=run_dir,
        plan={"core_version": "0.1.0", "recipe": RECIPE},
        first_step=first_step,
        total_steps=4,
        evaluation=EvaluationReport(step=0, metrics={"eval/accuracy": 0.25}) if first_step == 1 else None,
    )


def report(step: int, *, mean: float, with_completions: bool = False, evaluated: bool = False) -> StepReport:
    """A step, with a metric that did not apply."""
    return StepReport(
        step=step,
        total_steps=4,
        metrics={"reward/mean": mean, "rewards/other/mean": None},
        groups=(scored_group([1.0, None]),) if with_completions else (),
        advantages=((0.5, 0.0),) if with_completions else (),
        evaluation=EvaluationReport(step=step, metrics={"eval/accuracy": 0.75}) if evaluated else None,
    )


def outcome(run_dir: Path, *, steps: int, interrupted: bool = False) -> RunOutcome:
    """The last call."""
    return RunOutcome(status="interrupted" if interrupted else "finished", run_dir=run_dir, steps=steps)


def wandb_records(folder: Path) -> list[Any]:
    """The records of the newest offline run below a folder, once wandb's own process has written the last of them."""
    path = max(folder.rglob("run-*.wandb"), key=lambda found: found.stat().st_mtime)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        records = list(_records(path.read_bytes()))
        if records and records[-1].WhichOneof("record_type") == "exit":
            return records
        time.sleep(0.05)
    raise AssertionError(f"{path} has no end")


def _records(data: bytes) -> Iterator[Any]:
    """LevelDB's log format around protocol buffers."""
    from wandb.proto.wandb_internal_pb2 import Record

    position, gathered = 7, b""
    while position + 7 <= len(data):
        left = 32768 - position % 32768
        if left < 7:
            position += left
            continue
        _, length, part = struct.unpack("<IHB", data[position : position + 7])
        gathered += data[position + 7 : position + 7 + length]
        position += 7 + length
        if part in (1, 4):  # a whole record, or the last part of one
            record = Record()
            record.ParseFromString(gathered)
            gathered = b""
            yield record


def wandb_history(folder: Path) -> list[dict[str, Any]]:
    """What was logged, without wandb's own keys."""
    rows = []
    for record in wandb_records(folder):
        if record.WhichOneof("record_type") == "history":
            items = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            rows.append({name: value for name, value in items.items() if not name.startswith("_")})
    return rows


def wandb_numbers(folder: Path) -> list[int]:
    """wandb's own number of each row that was logged."""
    return [
        record.history.step.num for record in wandb_records(folder) if record.WhichOneof("record_type") == "history"
    ]


def wandb_begun(folder: Path) -> Any:
    """The record that says which run it is."""
    return next(record.run for record in wandb_records(folder) if record.WhichOneof("record_type") == "run")
