"""The wheel of grpo-datasets-vision with core's alone: reads rows, and says what to install for what is not in it."""

from __future__ import annotations

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


def test_a_recipe_ships_its_system_prompt_and_says_which_packages_it_needs(import_path: str, tmp_path: Path) -> None:
    shown = grpoctl(import_path, tmp_path, "recipe", "show", "clevr-count")
    system = shown.partition("recipes/clevr-count.yaml")[0]
    assert "ClevrCount as it was published" in shown, system
    said = grpoctl(import_path, tmp_path, "recipe", "check", "clevr-count", code=3)
    assert "pip install grpo-rewards-math" in said
