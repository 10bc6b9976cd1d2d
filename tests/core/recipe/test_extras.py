import tomllib
from pathlib import Path

import pytest

from grpo_core.errors import RecipeError
from grpo_core.plugins.catalog import not_installed
from grpo_core.recipe import extras
from grpo_core.recipe.extras import EXTRAS, missing_extras
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.resolve import resolve
from tests.core.recipe.fakes import fake_host, recipe_of


def test_extras_are_those_of_the_distribution() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "core/pyproject.toml").read_text(encoding="utf-8"))
    assert {name: tuple(texts) for name, texts in project["project"]["optional-dependencies"].items()} == EXTRAS


def test_the_extras_are_installed_for_development() -> None:
    assert [not_installed(EXTRAS[name]) for name in ("gguf", "lora")] == [[], []]
    assert list(missing_extras(recipe_of(model="./m.gguf", trainer={"lora": {}}))) == []


def test_a_setting_without_its_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"gguf": ("no-such-reader>=2", "pluggy"), "lora": ("no-such-adapters",)}
    monkeypatch.setattr(extras, "EXTRAS", absent)
    found = {
        dotted(each.path): each.message for each in missing_extras(recipe_of(model="./M.GGUF", trainer={"lora": {}}))
    }
    assert found == {
        "trainer.lora": "LoRA needs no-such-adapters, not installed here; pip install 'grpo-core[lora]'",
        "model.path": "a GGUF file needs no-such-reader>=2, not installed here; pip install 'grpo-core[gguf]'",
    }
    assert list(missing_extras(recipe_of())) == []
    with pytest.raises(RecipeError, match=r"trainer\.lora: LoRA needs no-such-adapters"):
        resolve(recipe_of(trainer={"lora": {}}), {}, host=fake_host())


def test_a_trainer_without_lora_is_named() -> None:
    with pytest.raises(RecipeError, match=r"trainer\.lora: 'acme/hidden' has no LoRA; choose a trainer with the capab"):
        resolve(recipe_of(trainer={"use": "hidden", "lora": {}}), {}, host=fake_host())
