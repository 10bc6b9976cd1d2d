"""What the options of the reward come to."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import ValidationError

from grpo_core.api import RewardError
from grpo_rewards_code.executor import make
from grpo_rewards_code.executor.make import ExecutorSetupError, make_executor
from grpo_rewards_code.executor.options import ExecutorOptions
from grpo_rewards_code.options import CodeRewardOptions


@pytest.mark.parametrize(("cpu_s", "wall_s"), [(1.0, 11.0), (4.0, 14.0), (6.0, 18.0), (20.0, 60.0)])
def test_the_clock_leaves_a_program_its_processor_time_on_a_loaded_machine(cpu_s: float, wall_s: float) -> None:
    limits = CodeRewardOptions(timeout_s=cpu_s).limits()
    assert (limits.cpu_s, limits.wall_s) == (cpu_s, wall_s)


def test_a_folder_to_import_from_that_is_not_there_is_named_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match=r"executor\.import_folders: .*/missing is not there") as caught:
        make_executor(ExecutorOptions(import_folders=(str(tmp_path), str(tmp_path / "missing"))))
    assert "site-packages" in str(caught.value)


def test_a_file_to_import_from_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    with pytest.raises(RewardError, match=r"a\.py is no folder"):
        make_executor(ExecutorOptions(import_folders=(str(tmp_path / "a.py"),)))


def test_the_interpreter_is_code_that_a_recipe_names() -> None:
    assert list(CodeRewardOptions(executor=ExecutorOptions(interpreter="./python")).named_code()) == ["./python"]
    assert list(CodeRewardOptions().named_code()) == []
    elsewhere = ExecutorOptions(kind="judge0", interpreter="./python")
    assert list(CodeRewardOptions(executor=elsewhere).named_code()) == []


def test_more_sandboxes_than_can_be_of_use_are_refused_before_any_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "available_cores", lambda: 2)
    message = "executor.workers is 65, and so many sandboxes are of no use on 2 cores"
    with pytest.raises(ExecutorSetupError, match=message) as caught:
        make_executor(ExecutorOptions(workers=65))
    assert "32 a core" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["judge0", "e2b", "local"])
def test_no_place_takes_a_million_programs_at_once(kind: Literal["judge0", "e2b", "local"]) -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1024"):
        ExecutorOptions(kind=kind, workers=1_000_000)
