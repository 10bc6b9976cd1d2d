"""The wheel of grpo-datasets-vision with core's alone: reads rows, and says what to install for what is not in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.packaging.alone import grpoctl, make_import_path
from tests.plugins.grpo_datasets_vision.hub_rows import geoqa_rows, write_parquet

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def import_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_import_path(tmp_path_factory.mktemp("wheels"), "core", "plugins/grpo-datasets-vision")


def test_the_plugin_is_there_and_the_others_are_not(import_path: str, tmp_path: Path) -> None:
    listed = grpoctl(import_path, tmp_path, "plugins", "list")
    assert "grpo-datasets-vision" in listed
    assert "grpo-rewards-math" not in listed


def test_rows_of_a_file_are_shown_from_the_wheel(import_path: str, tmp_path: Path) -> None:
    write_parquet(tmp_path / "file.parquet", geoqa_rows(4))
    shown = grpoctl(import_path, tmp_path, "datasets", "preview", "geoqa?path=./file.parquet", "--rows", "1")
    assert "in triangle ABC" in shown


def test_a_recipe_says_which_packages_it_needs(import_path: str, tmp_path: Path) -> None:
    said = grpoctl(import_path, tmp_path, "recipe", "check", "clevr-count", code=3)
    for package in ("grpo-rewards-math", "grpo-rollout-vllm", "grpo-trainer-deepspeed"):
        assert f"pip install '{package}'" in said


def test_a_recipe_has_its_system_prompt_in_the_wheel(import_path: str, tmp_path: Path) -> None:
    """Without what other packages bring, in a recipe that extends it."""
    own = "extends: clevr-count\nplugins: {require: []}\nrewards: [format_reward]\nrollout: {use: transformers}\n"
    (tmp_path / "own.yaml").write_text(own, encoding="utf-8")
    torch = ("--trainer", "torch", "--set", "trainer.options={}")
    told = json.loads(grpoctl(import_path, tmp_path, "recipe", "explain", "own.yaml", *torch, "--json"))
    assert "enclosed within <think> </think> and <answer> </answer> tags" in told["dataset.system"]["value"]
