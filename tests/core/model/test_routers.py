"""The load balancing loss of routers: its numbers, and which models ask for it."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import Tensor
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from grpo_core.model.routers import RouterLoss, router_arguments, router_loss_of, router_warning
from tests.core.rollout.many_models import make
from tests.tiny_models import make_model


def logits_of(probabilities: list[list[float]]) -> Tensor:
    return torch.tensor(probabilities, dtype=torch.float64).log()


def loss_of(kind: RouterLoss, layers: list[Tensor], counted_T: Tensor) -> float:
    return float(kind.loss(*kind.sums(layers, counted_T)))


def test_hand_worked_numbers_of_one_expert_a_token() -> None:
    """f = (2/3, 1/3) and P = ((0.9 + 0.6 + 0.2) / 3, (0.1 + 0.4 + 0.8) / 3), so 2 (2/3 * 1.7/3 + 1/3 * 1.3/3)."""
    kind = RouterLoss(coefficient=1.0, experts=2, chosen=1)
    layer = logits_of([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    assert loss_of(kind, [layer], torch.ones(3, dtype=torch.bool)) == pytest.approx(2 * (2 * 1.7 + 1 * 1.3) / 9)


def test_hand_worked_numbers_of_two_layers_and_a_token_that_does_not_count() -> None:
    """Layers are counted together: f = (2/2 * 1/2 + …) over the two tokens-and-layers that count."""
    kind = RouterLoss(coefficient=1.0, experts=2, chosen=1)
    layers = [logits_of([[0.9, 0.1], [0.5, 0.5]]), logits_of([[0.3, 0.7], [0.01, 0.99]])]
    # f = (1/2, 1/2), P = (1.2 / 2, 0.8 / 2)
    assert loss_of(kind, layers, torch.tensor([True, False])) == pytest.approx(2 * (0.5 * 0.6 + 0.5 * 0.4))


@pytest.mark.parametrize("chosen", [1, 2, 4])
def test_it_is_the_number_of_experts_a_token_where_the_load_is_even(chosen: int) -> None:
    kind = RouterLoss(coefficient=1.0, experts=4, chosen=chosen)
    order = [[0.4, 0.3, 0.2, 0.1][-shift:] + [0.4, 0.3, 0.2, 0.1][:-shift] for shift in range(4)]
    assert loss_of(kind, [logits_of(order)], torch.ones(4, dtype=torch.bool)) == pytest.approx(chosen)


@pytest.mark.parametrize("seed", range(5))
def test_of_all_tokens_it_is_what_transformers_computes(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    layers = [torch.randn(30, 8, generator=draw) * 3 for _ in range(3)]
    mask_BT = torch.rand(5, 6, generator=draw) < 0.7
    kind = RouterLoss(coefficient=1.0, experts=8, chosen=2)
    expected = float(load_balancing_loss_func(tuple(layers), 8, 2, mask_BT.long()))
    assert loss_of(kind, layers, mask_BT.flatten()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_the_tokens_add_up_to_the_loss_of_all(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    layers = [torch.randn(40, 6, generator=draw, dtype=torch.float64) for _ in range(2)]
    kind = RouterLoss(coefficient=1.0, experts=6, chosen=3)
    counted_T = torch.rand(40, generator=draw) < 0.8
    whole = kind.sums(layers, counted_T)
    sizes = [7, 1, 20, 12]
    parts = zip(*(torch.split(layer, sizes) for layer in layers), strict=True)
    sums = [kind.sums(part, counted) for part, counted in zip(parts, torch.split(counted_T, sizes), strict=True)]
    chosen_E = torch.stack([one.chosen_E for one in sums]).sum(0)
    assert torch.equal(chosen_E, whole.chosen_E)
    total = sum(float(kind.loss(one.probabilities_E, chosen_E)) for one in sums)
    assert total == pytest.approx(float(kind.loss(*whole)), rel=1e-12)


def test_no_token_gives_no_loss_and_not_nan() -> None:
    kind = RouterLoss(coefficient=1.0, experts=2, chosen=1)
    assert loss_of(kind, [torch.zeros(3, 2)], torch.zeros(3, dtype=torch.bool)) == 0.0


ROUTED = ["Jamba", "Qwen3-Next", "GraniteMoeHybrid", "Mixtral", "Qwen2-MoE", "Qwen3-MoE", "OLMoE", "PhiMoE", "GPT-OSS"]


@pytest.mark.parametrize("name", [*ROUTED, "JetMoE"])
def test_families_with_experts_are_read_as_their_own_forward_reads_them(name: str) -> None:
    model = make(name, output_router_logits=True)
    kind = router_loss_of(model)
    assert kind is not None
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    with torch.no_grad():
        layers = model.base_model(ids, use_cache=False, **router_arguments(model, asked=True)).router_logits
        expected = float(model(ids, use_cache=False).aux_loss)
    assert loss_of(kind, layers, torch.ones(7, dtype=torch.bool)) == pytest.approx(expected, rel=1e-5)


def test_the_loss_is_asked_for_by_the_config_alone() -> None:
    asked = router_loss_of(make("Mixtral", output_router_logits=True, router_aux_loss_coef=0.02))
    assert asked == RouterLoss(coefficient=0.02, experts=4, chosen=2)
    assert router_loss_of(make("Mixtral")) is None
    assert router_loss_of(make("Mixtral", output_router_logits=True, router_aux_loss_coef=0.0)) is None
    assert router_loss_of(make_model("qwen3")) is None


def test_a_family_without_such_a_loss_has_none_and_the_wish_for_one_is_answered() -> None:
    model = make("DeepSeek-V3", output_router_logits=True)
    assert router_loss_of(model) is None
    assert "DeepseekV3ForCausalLM has no load balancing loss that is known here" in (router_warning(model) or "")
    assert router_warning(make("DeepSeek-V3")) is None
    assert router_warning(make("Mixtral", output_router_logits=True)) is None


def test_routers_of_a_vision_language_model_that_have_no_loss_here_are_told() -> None:
    text = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "hidden_size": 16}
    text |= {
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "vocab_size": 32,
    }
    tower = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": 16}
    tower |= {"deepstack_visual_indexes": [0], "num_position_embeddings": 4}
    for asks in (True, False):
        config = transformers.Qwen3VLMoeConfig(
            text_config={**text, "output_router_logits": asks, "router_aux_loss_coef": 0.01}, vision_config=tower
        )
        with torch.device("meta"):
            model = transformers.Qwen3VLMoeForConditionalGeneration(config)
        is_right = router_loss_of(model) is not None or "trained by the policy's loss alone" in str(
            router_warning(model)
        )
        assert is_right is asks
