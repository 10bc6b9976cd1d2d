"""Backends and a tracker of one's own without options: they are built, watched over, and blamed by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.runs import grpoctl, make_workplace, metrics_of, train_arguments

PLUGIN = """
from grpo_core.api import RolloutSpec, TrackerSpec, TrainerSpec, UpdateReport, hookimpl


def make_rollout(options, context):
    from grpo_core.rollout.backend import TransformersRollout
    from grpo_core.rollout.options import TransformersRolloutOptions

    assert options is None

    class Rollout(TransformersRollout):
        def generate(self, requests):
            for group in super().generate(requests):
                yield ROLLOUT

    return Rollout(TransformersRolloutOptions(), context)


def make_trainer(options, context):
    from grpo_core.trainer.backend import make
    from grpo_core.trainer.options import TorchTrainerOptions

    assert options is None
    trainer = make(TorchTrainerOptions(), context)
    update = trainer.update
    trainer.update = lambda batch: TRAINER
    return trainer


class Tracker:
    def __init__(self, options, context):
        self.file = context.run_dir / "told"

    def grpo_step_finished(self, report):
        with self.file.open("a") as file:
            print(report.step, file=file)


@hookimpl
def grpo_rollout_backends():
    capabilities = frozenset({"weights:shared"})
    yield RolloutSpec(name="own", summary="s", target=f"{__file__}:make_rollout", capabilities=capabilities)


@hookimpl
def grpo_trainer_backends():
    capabilities = frozenset({"weights:shared"})
    yield TrainerSpec(name="own", summary="s", target=f"{__file__}:make_trainer", capabilities=capabilities)


@hookimpl
def grpo_trackers():
    yield TrackerSpec(name="own", summary="s", target=f"{__file__}:Tracker")
"""


def arguments(folder: Path, *, rollout: str = "group", trainer: str = "update(batch)") -> list[str]:
    make_workplace(folder)
    source = PLUGIN.replace("ROLLOUT", rollout).replace("TRAINER", trainer)
    (folder / "own.py").write_text(source, encoding="utf-8")
    own = ("--plugin", "own.py", "--rollout", "own", "--trainer", "own", "--report-to", "own")
    return train_arguments("run", *own, "--steps", "2")


def test_factories_without_options_are_called_and_their_run_trains(tmp_path: Path) -> None:
    grpoctl(tmp_path, *arguments(tmp_path))
    assert [row["step"] for row in metrics_of(tmp_path / "run")] == [1, 2]
    assert (tmp_path / "run" / "told").read_text(encoding="utf-8") == "1\n2\n"


@pytest.mark.parametrize(
    ("rollout", "trainer", "told"),
    [
        ("dict(text='a')", "update(batch)", "error: the rollout backend 'own.py/own' gave {'text': 'a'}, not a Roll"),
        ("group", "update(batch).metrics", "the trainer backend 'own.py/own': update gave a dict, not an UpdateReport"),
    ],
)
def test_what_they_give_wrong_is_told_as_theirs(tmp_path: Path, rollout: str, trainer: str, told: str) -> None:
    ran = grpoctl(tmp_path, *arguments(tmp_path, rollout=rollout, trainer=trainer), code=4)
    assert told in ran.stderr
