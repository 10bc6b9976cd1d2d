"""Where the bound of an image's pixels comes from: a flag, a recipe, or the variable that other trainers have."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.cli.planning import gather, make_plan
from grpo_core.errors import RecipeError
from grpo_core.recipe.plan import LaunchPlan

FLAGS = {"model": "none", "dataset": "countdown", "rewards": "format_reward"}


def planned(recipe: Path | None = None, **flags: object) -> LaunchPlan:
    return make_plan(gather(None if recipe is None else str(recipe), {**FLAGS, **flags}))[0]


def test_the_variable_is_below_recipe_and_flag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("model:\n  path: none\n  max_pixels: 2000\n", encoding="utf-8")
    assert planned().recipe.model.max_pixels is None
    monkeypatch.setenv("MAX_PIXELS", "1000")
    plan = planned()
    assert plan.recipe.model.max_pixels == 1000
    assert plan.origins["model.max_pixels"] == "the variable MAX_PIXELS"
    assert planned(recipe).recipe.model.max_pixels == 2000
    assert planned(recipe, max_pixels="3000").recipe.model.max_pixels == 3000


@pytest.mark.parametrize("value", ["many", "0", "-5", "1e30", "0.5"])
def test_a_variable_that_is_no_number_of_pixels_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MAX_PIXELS", value)
    with pytest.raises(RecipeError, match=r"model.max_pixels.*the variable MAX_PIXELS"):
        planned()
