from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from grpo_core.api import hookimpl
from grpo_core.observe.trackers import add_trackers
from grpo_core.plugins.observers import Observers
from grpo_core.recipe.plan import PlannedComponent
from grpo_core.types import BuildContext, RunOutcome, RunStarted, StepReport
from tests.core.loop.make import step_report

HERE = "tests.core.observe.test_trackers"
seen: list[tuple[str, object]] = []


class Options(BaseModel):
    """What the trackers of these tests take."""

    label: str = "plain"


class Recorder:
    def __init__(self, options: Options, context: BuildContext) -> None:
        seen.append(("built", (options.label, context.run_dir)))

    @hookimpl
    def grpo_run_started(self, started: RunStarted) -> None:
        seen.append(("started", started.first_step))

    @hookimpl
    def grpo_step_finished(self, report: StepReport) -> None:
        seen.append((f"step {report.step}", report.metrics["reward/mean"]))

    @hookimpl
    def grpo_run_finished(self, outcome: RunOutcome) -> None:
        seen.append(("finished", outcome.status))


class Broken:
    def __init__(self, options: Options, context: BuildContext) -> None:
        pass

    @hookimpl
    def grpo_step_finished(self, report: StepReport) -> None:
        seen.append(("asked", report.step))
        raise OSError("no network")


class Plain:
    """No decorators; one hook takes nothing, another everything."""

    def __init__(self, options: None, context: BuildContext) -> None:
        seen.append(("built", options))

    def grpo_run_started(self) -> None:
        seen.append(("started", None))

    def grpo_step_finished(self, report: StepReport, colour: str = "red") -> None:
        seen.append((f"step {report.step}", colour))

    def grpo_run_finished(self, **given: object) -> None:
        seen.append(("finished", list(given)))


class Misspelt:
    def __init__(self, options: None, context: BuildContext) -> None: ...

    def grpo_step_finish(self, report: StepReport) -> None: ...


class Greedy:
    def __init__(self, options: None, context: BuildContext) -> None: ...

    def grpo_step_finished(self, r: StepReport) -> None: ...


class Awaited:
    def __init__(self, options: None, context: BuildContext) -> None: ...

    async def grpo_step_finished(self, report: StepReport) -> None: ...


def a_class(options: None, context: BuildContext) -> object:
    return object


def unbuildable(options: Options, context: BuildContext) -> object:
    raise RuntimeError("no account")


def hookless(options: Options, context: BuildContext) -> object:
    return object()


def planned(name: str, **options: object) -> PlannedComponent:
    return PlannedComponent(
        name=f"acme/{name}", target=f"{HERE}:{name}", options_model=f"{HERE}:Options", options=options
    )


def without_options(name: str) -> PlannedComponent:
    return PlannedComponent(name=f"acme/{name}", target=f"{HERE}:{name}")


def watch(*trackers: PlannedComponent, steps: int = 4, logging_steps: int = 1) -> list[str]:
    """Run some steps with these trackers; gives what was reported about them."""
    seen.clear()
    lines: list[str] = []
    observers = Observers(lines.append)
    add_trackers(observers, trackers, BuildContext(run_dir=Path("runs/a")))
    plan = {"recipe": {"run": {"logging_steps": logging_steps}}}
    observers.run_started(RunStarted(run_dir=Path("runs/a"), plan=plan, first_step=1, total_steps=10))
    for step in range(1, steps + 1):
        observers.step_finished(step_report(step, **{"reward/mean": float(step)}))
    observers.run_finished(RunOutcome(status="finished", run_dir=Path("runs/a"), steps=steps))
    return lines


def test_a_tracker_is_built_with_its_options_and_told_of_the_run() -> None:
    assert watch(planned("Recorder", label="mine"), steps=1) == []
    assert seen == [
        ("built", ("mine", Path("runs/a"))),
        ("started", 1),
        ("step 1", 1.0),
        ("finished", "finished"),
    ]


def test_a_tracker_is_told_of_means_at_the_logging_interval() -> None:
    watch(planned("Recorder"), logging_steps=2)
    assert seen[2:-1] == [("step 2", 1.5), ("step 4", 3.5)]


def test_a_tracker_that_fails_says_so_once_and_the_others_go_on() -> None:
    (line,) = watch(planned("Broken"), planned("Recorder"))
    assert line.startswith("acme/Broken no longer watches this run: grpo_step_finished failed with OSError: no network")
    assert [entry for entry in seen if entry[0] == "asked"] == [("asked", 1)]
    assert ("step 4", 4.0) in seen


def test_a_tracker_that_cannot_be_built_is_reported_and_the_others_watch() -> None:
    first, second = watch(planned("unbuildable"), planned("hookless"), planned("Recorder"))
    assert first.startswith("acme/unbuildable does not watch this run:")
    assert "no account" in first
    assert "the factory of the tracker 'acme/hookless' gave a object without an observer hook" in second
    assert ("step 1", 1.0) in seen


def test_methods_of_a_tracker_need_no_decorator_and_its_factory_is_called_without_options_too() -> None:
    assert watch(without_options("Plain"), steps=1) == []
    assert seen == [("built", None), ("started", None), ("step 1", "red"), ("finished", ["outcome"])]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Misspelt", "'acme/Misspelt' has a method grpo_step_finish, which is no observer hook"),
        ("Greedy", "the tracker 'acme/Greedy': its method grpo_step_finished takes 'r', but is given: report"),
        ("Awaited", "the tracker 'acme/Awaited': its method grpo_step_finished is async, and nothing would await it"),
        ("a_class", "the factory of the tracker 'acme/a_class' gave a class without an observer hook"),
    ],
)
def test_a_tracker_that_could_not_be_told_anything_says_why_at_the_start(name: str, told: str) -> None:
    (line,) = watch(without_options(name))
    assert told in line
