"""One test a hook: the example in its docstring is a plugin that is admitted, and does what the hook is for."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from grpo_core.plugins import hookspecs
from grpo_core.plugins.airlock import prove
from grpo_core.plugins.health import health_of
from grpo_core.plugins.observers import Observers, load_observers
from grpo_core.plugins.specs import KINDS
from grpo_core.plugins.verdicts import Admitted, Candidate
from grpo_core.types.report import RunOutcome, RunStarted, StepReport
from tests.core.plugins.installed import write_plugin


def example_of(hook: str, folder: Path) -> Path:
    """A one-file plugin made of the example in a hook's docstring."""
    text = inspect.getdoc(getattr(hookspecs, hook)) or ""
    return write_plugin(
        folder, "import shutil\n\nfrom grpo_core.api import *\n\n" + inspect.cleandoc(text.partition("Example:\n")[2])
    )


def admitted(hook: str, folder: Path) -> Admitted:
    verdict = prove(Candidate(distribution="grpo-acme", version="1", modules=(str(example_of(hook, folder)),)))
    assert isinstance(verdict, Admitted), verdict
    return verdict


def names(plugin: Admitted) -> list[tuple[str, str]]:
    return [(spec.kind, spec.name) for spec in plugin.specs]


def observers(hook: str, folder: Path) -> Observers:
    (place,) = admitted(hook, folder).observers
    return load_observers([("grpo-acme", place)])


def test_hook_grpo_dataset_preprocessors(tmp_path: Path) -> None:
    assert names(admitted("grpo_dataset_preprocessors", tmp_path)) == [("dataset", "arithmetic")]


def test_hook_grpo_reward_functions(tmp_path: Path) -> None:
    assert names(admitted("grpo_reward_functions", tmp_path)) == [("reward", "brevity")]


def test_hook_grpo_rollout_backends(tmp_path: Path) -> None:
    assert names(admitted("grpo_rollout_backends", tmp_path)) == [("rollout", "acme")]


def test_hook_grpo_trainer_backends(tmp_path: Path) -> None:
    assert names(admitted("grpo_trainer_backends", tmp_path)) == [("trainer", "acme")]


def test_hook_grpo_trackers(tmp_path: Path) -> None:
    assert names(admitted("grpo_trackers", tmp_path)) == [("tracker", "acme")]


def test_hook_grpo_recipes(tmp_path: Path) -> None:
    assert names(admitted("grpo_recipes", tmp_path)) == [("recipe", "acme-small")]


def test_hook_grpo_health(tmp_path: Path) -> None:
    plugin = admitted("grpo_health", tmp_path)
    assert plugin.specs == ()
    (line,) = health_of(plugin)
    assert line == "there is no acme-engine: pip install acme-engine"


def test_hook_grpo_run_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watching = observers("grpo_run_started", tmp_path)
    watching.run_started(RunStarted(run_dir=Path("runs/a"), plan={}, first_step=1, total_steps=3))
    assert capsys.readouterr().out == "3 steps, see runs/a\n"


def test_hook_grpo_step_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watching = observers("grpo_step_finished", tmp_path)
    watching.step_finished(StepReport(step=2, total_steps=3, metrics={"reward/mean": 0.5}))
    assert capsys.readouterr().out == "2 0.5\n"


def test_hook_grpo_run_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watching = observers("grpo_run_finished", tmp_path)
    watching.run_finished(RunOutcome(status="interrupted", run_dir=Path("runs/a"), steps=3))
    assert capsys.readouterr().out == "interrupted\n"


def test_every_hook_has_a_test_of_its_own() -> None:
    hooks = {name for name in vars(hookspecs) if name.startswith("grpo_")}
    assert {name.removeprefix("test_hook_") for name in globals() if name.startswith("test_hook_")} == hooks


def test_every_kind_of_component_has_a_registration_hook(tmp_path: Path) -> None:
    from grpo_core.plugins.rules import REGISTRATION

    assert tuple(kind.kind for kind in REGISTRATION.values()) == KINDS
