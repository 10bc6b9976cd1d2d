from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from grpo_core.observe.console import ConsoleView
from grpo_core.types import RunStarted
from tests.core.loop.make import step_report


def shown(*, steps: int, **run: object) -> str:
    """What a plain console shows of a run with these settings."""
    out = io.StringIO()
    view = ConsoleView(Console(file=out, width=200))
    view.run_started(RunStarted(run_dir=Path("runs/a"), plan={"recipe": {"run": run}}, first_step=1, total_steps=10))
    for step in range(1, steps + 1):
        view.step_finished(step_report(step, **{"reward/mean": float(step)}))
    return out.getvalue()


def test_each_step_is_a_line() -> None:
    lines = shown(steps=2).splitlines()
    assert [line.split("  ")[:2] for line in lines] == [["step 1/10", "reward 1.000"], ["step 2/10", "reward 2.000"]]


def test_logging_steps_shows_means_of_several_steps() -> None:
    lines = shown(steps=5, logging_steps=2).splitlines()
    assert [line.split("  ")[:2] for line in lines] == [["step 2/10", "reward 1.500"], ["step 4/10", "reward 3.500"]]


def test_a_completion_is_shown_now_and_then() -> None:
    text = shown(steps=4, show_completion_every_steps=2)
    assert text.count("sample train-000001") == 2
    assert "6*7?" in text
