import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grpo_core.errors import CheckpointError, UsageError
from grpo_core.loop.launch import check_state, processes_before
from grpo_core.ranks.place import Processes
from grpo_core.recipe.plan import LaunchPlan

PLAN = LaunchPlan.model_construct()


def _checkpoint(folder: Path, **known: Any) -> Path:
    state = {"step": 2, "version": 2, "zero_reward_steps": 0, "fingerprint": "rows"}
    (folder / "state.json").write_text(json.dumps({**state, **known}), encoding="utf-8")
    return folder


def test_a_run_goes_on_with_as_many_processes_as_it_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert processes_before(PLAN, _checkpoint(tmp_path, processes=2, per_machine=2)) == Processes(per_node=2)
    expected = "going on with 2 processes, as before; --nproc-per-node N for another number\n"
    assert capsys.readouterr().out == expected


def test_a_run_that_has_no_checkpoint_begins_with_as_many_as_it_was_started_with() -> None:
    plan = LaunchPlan.model_construct(processes=2, per_machine=2)
    assert processes_before(plan, None) == Processes(per_node=2)


def test_a_run_of_one_process_goes_on_as_one_and_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert processes_before(PLAN, None) == Processes()
    assert processes_before(PLAN, _checkpoint(tmp_path)) == Processes()
    assert capsys.readouterr().out == ""


def test_a_run_of_several_machines_must_be_told_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="had 16 processes, 8 on each machine") as caught:
        processes_before(PLAN, _checkpoint(tmp_path, processes=16, per_machine=8))
    assert "--nproc-per-node N" in str(caught.value.hint)


@pytest.mark.parametrize("position", [{}, {"start": None}, 3, None])
def test_a_position_that_is_none_of_a_stream_is_an_error_of_the_checkpoint(tmp_path: Path, position: object) -> None:
    class Stream:
        def restore(self, data: Any) -> bool:
            return bool(data["rows"]["start"]["position"] >= 0)

    prepared: Any = SimpleNamespace(fingerprint="rows", feed=Stream())
    with pytest.raises(CheckpointError, match=r"state\.json is damaged: its 'data' is no position in a streamed"):
        check_state(_checkpoint(tmp_path, data={"rows": position}), prepared, allow_changes=False)
