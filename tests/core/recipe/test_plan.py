import os
from pathlib import Path

import pytest

from grpo_core.errors import CheckpointError
from grpo_core.recipe.plan import LaunchPlan, run_folder
from grpo_core.recipe.resolve import resolve
from tests.core.recipe.fakes import fake_host, recipe_of


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    plan = resolve(recipe_of(rewards=["brevity", "timed"]), {"model.path": "r.yaml:1"}, host=fake_host())
    plan.write(tmp_path)
    assert LaunchPlan.read(tmp_path) == plan


def test_a_folder_without_a_plan_says_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"plan\.json cannot be read: No such file") as caught:
        LaunchPlan.read(tmp_path)
    assert caught.value.hint == "Name the folder of a run."


@pytest.mark.parametrize("content", [b"{}", b"{", b"\xff", b'{"recipe": 3}'])
def test_a_damaged_plan_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"plan\.json is no plan that grpo-core .* understands"):
        LaunchPlan.read(tmp_path)


def test_a_plan_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.json")
    with pytest.raises(CheckpointError, match=r"plan\.json cannot be read: it is a FIFO, not a file"):
        LaunchPlan.read(tmp_path)


def test_a_lost_plan_is_read_from_the_newest_checkpoint_that_has_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = resolve(recipe_of(), {}, host=fake_host())
    for step, command in ((1, "old"), (2, "new"), (3, None)):
        checkpoint = tmp_path / "checkpoints" / f"step-{step:06d}"
        checkpoint.mkdir(parents=True)
        if command is not None:
            plan.model_copy(update={"command": command}).write(checkpoint)
    (tmp_path / "checkpoints" / "step-000003" / "plan.json").touch()
    for damage in (b"", b"{", None):
        (tmp_path / "plan.json").unlink() if damage is None else (tmp_path / "plan.json").write_bytes(damage)
        caplog.clear()
        assert LaunchPlan.read(tmp_path).command == "new"
        [told] = [record.getMessage() for record in caplog.records]
        assert told.startswith(f"{tmp_path}/plan.json ")
        assert told.endswith("its copy in " + str(tmp_path / "checkpoints" / "step-000002") + " is taken")
        assert run_folder(tmp_path) == tmp_path
    (tmp_path / "checkpoints" / "step-000002" / "state.json").touch()
    assert run_folder(tmp_path / "checkpoints" / "step-000002") == tmp_path
    (tmp_path / "checkpoints" / "step-000002" / "state.json").unlink()
    assert run_folder(tmp_path / "checkpoints" / "step-000002") == tmp_path


def test_a_damaged_plan_without_a_copy_says_how_to_get_one(tmp_path: Path) -> None:
    (tmp_path / "plan.json").touch()
    (tmp_path / "checkpoints" / "step-000001").mkdir(parents=True)
    with pytest.raises(CheckpointError) as caught:
        LaunchPlan.read(tmp_path)
    assert "--plan-only and another --output writes a plan.json that can be copied here" in str(caught.value.hint)
