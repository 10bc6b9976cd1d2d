from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.plugins.observers import load_observers
from grpo_core.types.report import RunOutcome, RunStarted, StepReport
from tests.core.plugins.installed import write_plugin

STARTED = RunStarted(run_dir=Path("runs/a"), plan={}, first_step=1, total_steps=3)
OUTCOME = RunOutcome(status="finished", run_dir=Path("runs/a"), steps=3)

WATCHER = """
    from grpo_core.api import hookimpl
    SEEN = []

    @hookimpl
    def grpo_run_started(started):
        SEEN.append(started.total_steps)

    @hookimpl
    def grpo_step_finished(report):
        SEEN.append(report.step)

    @hookimpl
    def grpo_run_finished(outcome):
        SEEN.append(outcome.status)
"""
FAILS = """
    from grpo_core.api import hookimpl
    CALLS = []

    @hookimpl
    def grpo_step_finished(report):
        CALLS.append(report.step)
        {statement}
"""


def step(number: int) -> StepReport:
    return StepReport(step=number, total_steps=3, metrics={})


def seen(path: Path, name: str) -> list[object]:
    from grpo_core.plugins.targets import load_target

    value = load_target(f"{path}:{name}")
    assert isinstance(value, list)
    return value


def test_observers_are_told_of_the_run_in_order(tmp_path: Path) -> None:
    file = write_plugin(tmp_path, WATCHER)
    observers = load_observers([("grpo-watch", str(file))])
    observers.run_started(STARTED)
    observers.step_finished(step(1))
    observers.step_finished(step(2))
    observers.run_finished(OUTCOME)
    assert seen(file, "SEEN") == [3, 1, 2, "finished"]


@pytest.mark.parametrize(
    ("statement", "what"), [("1 / 0", "ZeroDivisionError: division by zero"), ("exit(5)", "it calls sys.exit(5)")]
)
def test_an_observer_that_fails_is_reported_once_and_no_longer_called(
    tmp_path: Path, statement: str, what: str
) -> None:
    bad = write_plugin(tmp_path, FAILS.format(statement=statement), name="bad.py")
    good = write_plugin(tmp_path, WATCHER, name="good.py")
    lines: list[str] = []
    observers = load_observers([("grpo-bad", str(bad)), ("grpo-good", str(good))], report=lines.append)
    for number in (1, 2):
        observers.step_finished(step(number))
    observers.run_finished(OUTCOME)
    assert len(lines) == 1
    assert lines[0].startswith(f"grpo-bad no longer watches this run: grpo_step_finished failed with {what} (")
    assert seen(bad, "CALLS") == [1]
    assert seen(good, "SEEN") == [1, 2, "finished"]


def test_ctrl_c_in_an_observer_stops_the_run(tmp_path: Path) -> None:
    file = write_plugin(tmp_path, FAILS.format(statement="raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        load_observers([("grpo-watch", str(file))]).step_finished(step(1))


def test_an_observer_that_cannot_be_loaded_is_reported_and_the_others_watch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = write_plugin(tmp_path, "1 / 0", name="bad.py")
    misread = write_plugin(
        tmp_path, "from grpo_core.api import hookimpl\n@hookimpl\ndef grpo_step_finished(x): ...", name="misread.py"
    )
    good = write_plugin(tmp_path, WATCHER, name="good.py")
    load_observers([("grpo-bad", str(bad)), ("grpo-misread", str(misread)), ("grpo-good", str(good))]).run_started(
        STARTED
    )
    first, second = capsys.readouterr().err.splitlines()[:2]
    assert first.startswith(f"grpo-bad does not watch this run: '{bad}' cannot be imported: ZeroDivisionError")
    assert second.startswith("grpo-misread does not watch this run: ")
    assert seen(good, "SEEN") == [3]


def test_a_run_without_observers_is_fine() -> None:
    load_observers([]).step_finished(step(1))
