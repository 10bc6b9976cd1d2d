"""Weights that are left out of training, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_core.errors import RecipeError
from grpo_core.model.freeze import count_frozen, freeze
from grpo_core.model.image_features import tower_of
from grpo_core.model.load import load_model
from grpo_core.model.lora import add_adapter
from grpo_core.recipe.schema import ModelSettings, TrainerSettings
from tests.tiny_models import make_model
from tests.vl_models import VL_FAMILIES, make_vl_folder


@pytest.fixture(scope="module", params=VL_FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vl_folder(request.param, tmp_path_factory.mktemp("vl") / request.param)


def loaded(folder: Path) -> Any:
    return load_model(ModelSettings(path=str(folder)), torch.float32)


def frozen(model: Any, *names: str) -> set[str]:
    freeze(model, TrainerSettings(freeze=names))
    return {name for name, weight in model.named_parameters() if not weight.requires_grad}


def test_vision_is_the_tower_of_every_family_and_nothing_else(folder: Path) -> None:
    model = loaded(folder)
    names = frozen(model, "vision")
    tower = {id(weight) for weight in tower_of(model).parameters()}
    assert names == {name for name, weight in model.named_parameters() if id(weight) in tower}
    settings = TrainerSettings(freeze=("vision",))
    counted = sum(weight.numel() for weight in tower_of(model).parameters())
    assert count_frozen(ModelSettings(path=str(folder)), settings) == counted


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.layers.1", {"model.layers.1."}),
        ("layers.1", {"model.layers.1."}),
        ("embed_tokens", {"model.embed_tokens."}),
        ("*.layers.0.*_proj.weight", {"model.layers.0.self_attn.q_proj.weight"}),
        ("model.norm.weight", {"model.norm.weight"}),
    ],
)
def test_modules_by_names_or_ends_of_them_and_weights_by_patterns(name: str, expected: set[str]) -> None:
    model = make_model("llama", tie_word_embeddings=False)
    names = frozen(model, name)
    for beginning in expected:
        wanted = {each for each, _ in model.named_parameters() if each.startswith(beginning)}
        assert wanted
        assert wanted <= names
    assert all("layers.0" in each for each in names) or all(
        any(each.startswith(beginning) for beginning in expected) for each in names
    )


def test_a_weight_under_two_names_is_frozen_by_each_of_them() -> None:
    assert frozen(make_model("qwen3", tie_word_embeddings=True), "lm_head") == {"model.embed_tokens.weight"}


def test_a_name_that_is_nowhere_is_refused_with_the_modules_that_are() -> None:
    with pytest.raises(RecipeError, match=r"trainer\.freeze\.1: .*no module or weight 'embed_token'; did you mean "):
        frozen(make_model("llama"), "layers", "embed_token")
    with pytest.raises(RecipeError, match=r"no module or weight '\*\.blocks\.\*'; it has .*model\.layers"):
        frozen(make_model("llama"), "*.blocks.*")
    with pytest.raises(RecipeError, match=r"reads text only and has no vision tower; it has .*model\.layers"):
        frozen(make_model("llama"), "vision")


def test_something_must_be_left_to_train() -> None:
    with pytest.raises(RecipeError, match=r"trainer\.freeze: nothing of the model is left to train"):
        frozen(make_model("llama"), "model", "lm_head")


def test_what_has_an_adapter_is_not_frozen_without_a_word() -> None:
    settings = TrainerSettings.model_validate({"freeze": ["layers.0"], "lora": {"rank": 2}})
    model = make_model("llama")
    assert settings.lora is not None
    add_adapter(model, settings.lora, seed=0)
    with pytest.raises(
        RecipeError, match=r"trainer\.freeze\.0: 'layers\.0' has .*lora_A.*trainer\.lora adds or trains"
    ):
        freeze(model, settings)
    freeze(model, settings.model_copy(update={"freeze": ("embed_tokens",)}))
