"""Runs that end before their end: by an error, a signal, the clock's checkpoints; and what they go on from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.runs import Ran, completions_of, grpoctl, make_workplace, metrics_of, train_arguments

REWARD = '''
import os, pathlib

FAULT = pathlib.Path("fault")


def vowels(completions, wanted, step, progress):
    """Vowels; and once what the file `fault` says, in that step, or in the evaluation after it."""
    where = f"{step} {'evaluation' if progress == 0.0 else 'training'}"
    if FAULT.exists() and FAULT.read_text().startswith(where):
        code = FAULT.read_text().partition(": ")[2]
        FAULT.unlink()
        exec(code)
    return [sum(c in "aeiou" for c in text) / max(len(text), 1) + w for text, w in zip(completions, wanted)]
'''
EVALUATED = ("--eval-rows", "2", "--eval-steps", "2", "--set", "scoring.max_failed_share=0")
BREAKS = "raise ValueError('the service is away')"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    make_workplace(tmp_path)
    (tmp_path / "mine.py").write_text(REWARD, encoding="utf-8")
    return tmp_path


def run_with(place: Path, fault: str, *more: str, code: int = 4) -> Ran:
    (place / "fault").write_text(fault, encoding="utf-8")
    return grpoctl(place, *train_arguments("run", *EVALUATED, *more), code=code)


def checkpoints(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").glob("*"))


def assert_same_run(one: Path, other: Path) -> None:
    assert metrics_of(one) == metrics_of(other)
    assert completions_of(one) == completions_of(other)
    weights = "final/model.safetensors"
    assert (one / weights).read_bytes() == (other / weights).read_bytes()
    assert sorted(path.name for path in (one / "probes").iterdir()) == sorted(
        path.name for path in (other / "probes").iterdir()
    )


def test_a_run_that_fails_in_a_step_or_its_evaluation_goes_on_as_if_it_had_not(place: Path) -> None:
    grpoctl(place, *train_arguments("whole", *EVALUATED))
    failed = run_with(place, f"2 evaluation: {BREAKS}")
    assert "raised ValueError: the service is away" in failed.stderr
    assert "  `grpoctl resume run` goes on from step 2\n" in failed.stderr
    assert checkpoints(place / "run") == ["step-000002"]
    assert [row["step"] for row in metrics_of(place / "run")] == [0, 1, 2]
    (place / "fault").write_text(f"4 training: {BREAKS}", encoding="utf-8")
    failed = grpoctl(place, "resume", "run", code=4)
    assert "  `grpoctl resume run` goes on from step 3\n" in failed.stderr
    (place / "fault").write_text(f"4 evaluation: {BREAKS}", encoding="utf-8")
    grpoctl(place, "resume", "run", code=4)
    assert checkpoints(place / "run")[-1] == "step-000004"
    done = grpoctl(place, "resume", "run")
    assert "finished after 4 steps" in done.stdout
    assert "held-out prompts: " in done.stdout
    assert_same_run(place / "run", place / "whole")


def test_checkpoints_by_the_clock_change_no_number_and_do_not_fill_the_disk(place: Path) -> None:
    grpoctl(place, *train_arguments("whole", *EVALUATED, "--set", "run.save_minutes=null"))
    assert checkpoints(place / "whole") == ["step-000004"]
    done = grpoctl(place, *train_arguments("run", *EVALUATED, "--save-minutes", "0.001"))
    assert "checkpoints: every 0.001 minutes, at the end, and at the last whole step when the run fails" in done.stdout
    assert {"step-000003", "step-000004"} <= set(checkpoints(place / "run"))
    assert len(checkpoints(place / "run")) <= 3
    assert_same_run(place / "run", place / "whole")


@pytest.mark.parametrize("value", ["0", "-1", "never", "1e99"])
def test_minutes_that_are_none_are_refused(place: Path, value: str) -> None:
    done = grpoctl(place, *train_arguments("run", "--save-minutes", value), code=2)
    assert "run.save_minutes: " in done.stderr
    assert "(--save-minutes)" in done.stderr
    assert not (place / "run").exists()


@pytest.mark.parametrize(
    ("signals", "step", "warning"),
    [
        ("SIGHUP", 3, "stopping after this step"),
        ("SIGINT SIGINT", 2, "stopping after this step"),
    ],
)
def test_a_signal_leaves_a_checkpoint_wherever_one_can_be_written(
    place: Path, signals: str, step: int, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    sends = "import signal; " + "; ".join(f"signal.raise_signal(signal.{name})" for name in signals.split())
    done = run_with(place, f"3 training: {sends}", code=130)
    assert any(warning in message for message in caplog.messages)
    assert checkpoints(place / "run") == [f"step-{step:06d}"]
    assert f"interrupted after {step} steps; go on with: grpoctl resume run" in done.stdout


def test_a_signal_before_the_first_step_saves_nothing_and_says_so(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = run_with(place, "0 evaluation: import signal; signal.raise_signal(signal.SIGTERM)", code=130)
    assert "stopping at once: no step has begun, so there is nothing to save" in caplog.messages
    assert checkpoints(place / "run") == []
    assert "interrupted after 0 steps; nothing is saved, begin again with: grpoctl resume run" in done.stdout
