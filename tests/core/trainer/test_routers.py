"""The loss of routers in an update: its gradient, and that it does not depend on how the update is cut."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from grpo_core.backends import ObjectiveSettings
from grpo_core.types import TrainBatch
from tests.core.model.adapters import load_plain
from tests.core.trainer.batches import (
    ROUTER_COEFFICIENT,
    UNTOUCHED,
    assert_same_gradients,
    gradient_of_update,
    make_batch,
    make_routed_folder,
    make_trainer,
    plain_gradient,
)


def router_loss(model: Any, batch: TrainBatch) -> Tensor:
    """By definition, in fp64: each completion alone, f and P over the tokens in the loss and all layers."""
    model.double().set_experts_implementation("eager")  # the others have no fp64
    experts, chosen = model.num_experts, model.num_experts_per_tok
    rows = []
    for group in batch.groups:
        for member in group.members:
            if member.in_loss:
                ids = torch.tensor([group.prompt_ids + member.token_ids[:-1]])
                layers = model.base_model(ids, use_cache=False, output_router_logits=True).router_logits
                rows += [layer[len(group.prompt_ids) - 1 :] for layer in layers]
    probabilities = torch.cat(rows).softmax(-1)
    assert len(probabilities) == batch.tokens * model.config.num_hidden_layers
    shares = torch.zeros(experts, dtype=torch.float64)
    for row in probabilities:
        shares[row.topk(chosen).indices] += 1.0 / len(probabilities)
    return experts * (shares * probabilities.mean(0)).sum()


def expected_gradient(folder: Path, batch: TrainBatch) -> tuple[dict[str, Tensor], float]:
    model = load_plain(folder)
    policy = plain_gradient(model, batch, ObjectiveSettings())
    loss = router_loss(model, batch)
    model.zero_grad()
    loss.backward()
    own = {name: weight.grad for name, weight in model.named_parameters()}
    return {
        name: gradient.double() + (0.0 if own[name] is None else ROUTER_COEFFICIENT * own[name])
        for name, gradient in policy.items()
    }, loss.item()


@pytest.mark.parametrize("shared_prefix", ["require", "off"])
@pytest.mark.parametrize("micro_batch_tokens", [1, 60, 10_000])
def test_the_gradient_is_that_of_the_whole_update_however_it_is_cut(
    tmp_path: Path, micro_batch_tokens: int, shared_prefix: str
) -> None:
    folder, batch = make_routed_folder(tmp_path / "model"), make_batch(signal_free=(1,))
    trainer = make_trainer(folder, micro_batch_tokens=micro_batch_tokens, shared_prefix=shared_prefix, **UNTOUCHED)
    found = gradient_of_update(trainer, batch, tmp_path / "scratch")
    expected, _ = expected_gradient(folder, batch)
    assert_same_gradients({name: value.double() for name, value in found.items()}, expected)


@pytest.mark.parametrize("name", ["Qwen3-MoE", "GPT-OSS"])
@pytest.mark.parametrize("more", [{"gradient_checkpointing": True}, {"plain": True}])
def test_recomputed_activations_and_the_plain_path_have_the_same(
    tmp_path: Path, name: str, more: dict[str, bool]
) -> None:
    folder, batch = make_routed_folder(tmp_path / "model", name), make_batch()
    is_plain = more.pop("plain", False)
    trainer = make_trainer(folder, micro_batch_tokens=60, **more, **UNTOUCHED)
    if is_plain:
        trainer._policy.path = "plain"
    found = gradient_of_update(trainer, batch, tmp_path / "scratch")
    expected, _ = expected_gradient(folder, batch)
    assert_same_gradients({name: value.double() for name, value in found.items()}, expected)


def test_the_metric_is_the_loss_without_its_coefficient_and_the_optimisers_loss_has_it(tmp_path: Path) -> None:
    folder, batch = make_routed_folder(tmp_path / "model"), make_batch(signal_free=(0, 2))
    metrics = make_trainer(folder, micro_batch_tokens=60).update(batch).metrics
    _, loss = expected_gradient(folder, batch)
    assert metrics["policy/router_loss"] == pytest.approx(loss, rel=1e-5)
    assert metrics["trainer/loss"] == pytest.approx(metrics["policy/loss"] + ROUTER_COEFFICIENT * loss, rel=1e-5)
    assert metrics["trainer/skipped_sequences"] == 0.0


@pytest.mark.parametrize("changes", [{"output_router_logits": False}, {"router_aux_loss_coef": 0.0}])
def test_where_the_config_does_not_ask_there_is_no_such_loss(tmp_path: Path, changes: dict[str, Any]) -> None:
    metrics = (
        make_trainer(make_routed_folder(tmp_path / "model", **changes)).update(make_batch(signal_free=(1,))).metrics
    )
    assert "policy/router_loss" not in metrics
    assert metrics["trainer/loss"] == pytest.approx(metrics["policy/loss"])
    assert metrics["trainer/skipped_sequences"] > 0


def test_log_probabilities_do_not_know_of_it(tmp_path: Path) -> None:
    batch = make_batch()
    stats = [
        make_trainer(make_routed_folder(tmp_path / str(asked), output_router_logits=asked)).logprobs(batch, "policy")
        for asked in (True, False)
    ]
    assert stats[0] == stats[1]


def test_an_adapter_is_trained_by_it_too_and_the_exported_config_still_asks(tmp_path: Path) -> None:
    folder = make_routed_folder(tmp_path / "model")
    lora = {"rank": 2, "targets": ["q_proj"]}
    trainer = make_trainer(folder, lora=lora, learning_rate=0.1)
    first = trainer.update(make_batch(signal_free=(0, 1, 2))).metrics
    second = trainer.update(make_batch(signal_free=(0, 1, 2))).metrics
    assert second["policy/router_loss"] != first["policy/router_loss"]
    trainer.export(tmp_path / "final")
    assert load_plain(tmp_path / "final").config.output_router_logits is True


def test_routers_that_are_not_finite_are_refused_like_any_loss(tmp_path: Path) -> None:
    from grpo_core.errors import Collapse

    trainer = make_trainer(make_routed_folder(tmp_path / "model"))
    trainer.module().model.layers[0].mlp.gate.weight.data.fill_(math.nan)
    with pytest.raises(Collapse):
        trainer.update(make_batch())
