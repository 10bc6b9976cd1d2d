"""A run that reports to trackers: at the logging interval, on in the same place after a resume, and never stopped by
one that fails."""

from __future__ import annotations

from pathlib import Path

from tests.integration.runs import grpoctl, make_workplace, metrics_of, train_arguments
from tests.integration.test_resume import SAVING, cut_to_step_two

FAILING = """
from grpo_core.api import TrackerSpec, hookimpl


class Failing:
    def __init__(self, options, context):
        pass

    @hookimpl
    def grpo_step_finished(self, report):
        raise OSError("no network")


@hookimpl
def grpo_trackers():
    yield TrackerSpec(name="failing", summary="Fails", target="{place}:Failing")
    yield TrackerSpec(name="lacking", summary="Lacks its library", target="{place}:Failing", requires=("no-such-lib",))
"""


def curve(run: Path, name: str) -> list[int]:
    """The steps at which TensorBoard has a value."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "trackers" / "tensorboard")).Reload()
    return [event.step for event in events.Scalars(name)]


def test_a_tracker_shows_every_second_step_and_metrics_jsonl_has_them_all(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run", "--report-to", "tensorboard", "--logging-steps", "2"))
    assert curve(tmp_path / "run", "reward/mean") == [2, 4]
    assert [row["step"] for row in metrics_of(tmp_path / "run")] == [1, 2, 3, 4]


def test_a_resumed_run_goes_on_in_the_same_place(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", *SAVING, "--report-to", "tensorboard"))
    cut_to_step_two(tmp_path / "whole", tmp_path / "cut")
    grpoctl(tmp_path, "resume", "cut")
    assert curve(tmp_path / "cut", "reward/mean") == [1, 2, 3, 4]
    assert curve(tmp_path / "cut", "eval/reward_mean") == curve(tmp_path / "whole", "eval/reward_mean")


def test_a_tracker_that_fails_says_so_once_and_the_run_goes_on(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    plugin = tmp_path / "failing.py"
    plugin.write_text(FAILING.replace("{place}", str(plugin)), encoding="utf-8")
    done = grpoctl(tmp_path, *train_arguments("run", "--plugin", "failing.py", "--report-to", "failing"))
    assert "finished after 4 steps" in done.stdout
    assert done.stderr.count("no network") == 1
    assert "failing.py/failing no longer watches this run" in done.stderr


def test_an_unusable_tracker_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    plugin = tmp_path / "failing.py"
    plugin.write_text(FAILING.replace("{place}", str(plugin)), encoding="utf-8")
    unknown = grpoctl(tmp_path, *train_arguments("run", "--report-to", "wand"), code=3)
    assert "run.report_to: no plugin registers a tracker 'wand'. Did you mean 'wandb'?" in unknown.stderr
    lacking = grpoctl(tmp_path, *train_arguments("run", "--plugin", "failing.py", "--report-to", "lacking"), code=3)
    assert "'lacking' needs no-such-lib, not installed here. pip install 'no-such-lib'" in lacking.stderr
    assert not (tmp_path / "run").exists()
