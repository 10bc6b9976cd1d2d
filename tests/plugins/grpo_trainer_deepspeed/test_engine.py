"""The parts around an engine that need no DeepSpeed; engines themselves are tested on real ranks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from pydantic import BaseModel, ConfigDict

from grpo_core.backends import TrainerSettings
from grpo_core.errors import RecipeError
from grpo_core.recipe.schema import LoraSettings
from grpo_core.training import PolicyModule, add_adapter
from grpo_trainer_deepspeed.adamw import make_adamw
from grpo_trainer_deepspeed.engine import make_engine, plain_head, whole
from tests.tiny_models import make_model


def test_a_plain_head_computes_what_the_module_does() -> None:
    model = make_model()
    hidden = torch.randn(3, 32)
    calls: list[object] = []
    model.lm_head.register_forward_hook(lambda *given: calls.append(given))
    assert torch.equal(plain_head(model)(hidden), torch.nn.functional.linear(hidden, model.lm_head.weight))
    assert not calls


@pytest.mark.parametrize("lora", [{"targets": ["lm_head"]}, {"modules_to_save": ["lm_head"]}])
def test_a_head_with_an_adapter_is_refused_in_stage_3(lora: dict[str, list[str]]) -> None:
    model = make_model(tie_word_embeddings=False)
    add_adapter(model, LoraSettings(**lora), seed=0)
    with pytest.raises(RecipeError, match="in stage 3 the head can neither have an adapter nor be trained beside one"):
        plain_head(model)


def test_a_weight_that_is_not_spread_is_whole() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    assert whole(weight).data_ptr() == weight.data_ptr()
    assert not whole(weight).requires_grad


def test_matrices_alone_decay() -> None:
    weights = [torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.ones(2))]
    groups = make_adamw(weights, TrainerSettings(weight_decay=0.1), on_cpu=False).param_groups
    assert [(group["weight_decay"], [weight.ndim for weight in group["params"]]) for group in groups] == [
        (0.1, [2]),
        (0.0, [1]),
    ]


def test_a_spread_matrix_is_known_by_the_shape_it_has_as_a_whole() -> None:
    spread = torch.nn.Parameter(torch.ones(0))
    spread.ds_shape = torch.Size([4, 4])  # type: ignore[attr-defined]
    (group,) = make_adamw([spread], TrainerSettings(weight_decay=0.1), on_cpu=False).param_groups
    assert group["weight_decay"] == 0.1


def test_without_decay_all_weights_that_are_trained_are_one_group() -> None:
    weights = [
        torch.nn.Parameter(torch.ones(2, 2)),
        torch.nn.Parameter(torch.ones(2)),
        torch.nn.Parameter(torch.ones(1)),
    ]
    weights[2].requires_grad_(False)
    (group,) = make_adamw(weights, TrainerSettings(), on_cpu=False).param_groups
    assert group["params"] == weights[:2]


def test_a_step_can_be_withheld() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    adamw = make_adamw([weight], TrainerSettings(learning_rate=0.1), on_cpu=False)
    weight.grad = torch.ones(2)
    adamw.withheld = True
    adamw.step()
    assert weight.tolist() == [1.0, 1.0]
    assert not adamw.state
    adamw.withheld = False
    adamw.step()
    assert weight.tolist() == pytest.approx([0.9, 0.9])
    assert type(adamw).__name__ == "AdamW"


def test_what_deepspeed_does_not_take_is_named_with_its_key() -> None:
    class Zero(BaseModel):
        model_config = ConfigDict(extra="forbid", title="DeepSpeedZeroConfig")
        stage: int

    deepspeed = SimpleNamespace(initialize=lambda *, config, **_: Zero(**config["zero_optimization"]))
    config = {"zero_optimization": {"stage": 2, "stage2_magic": 1}}
    with pytest.raises(RecipeError) as caught:
        make_engine(deepspeed, PolicyModule(make_model()), config, TrainerSettings(), on_cpu=False)
    assert "trainer.options.config: DeepSpeedZeroConfig does not take stage2_magic = 1" in caught.value.message
