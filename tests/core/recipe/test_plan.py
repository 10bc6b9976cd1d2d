from pathlib import Path

import pytest

from grpo_core.errors import CheckpointError
from grpo_core.recipe.plan import LaunchPlan
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
