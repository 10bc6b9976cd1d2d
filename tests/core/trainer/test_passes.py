"""One pass over micro-batches; that it makes the right losses and numbers is tested through the trainer."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grpo_core.backends import ObjectiveSettings, TrainerSettings
from grpo_core.errors import Collapse
from grpo_core.trainer.passes import backward_pass, pack_for_loss, require_finite, update_report
from grpo_core.trainer.policy import PolicyModule
from grpo_core.trainer.spread import Spread
from tests.core.trainer.batches import make_batch
from tests.tiny_models import make_model

ALONE = Spread(world_size=1, device=torch.device("cpu"))


def test_losses_are_handed_over_one_by_one_and_the_last_one_is_named() -> None:
    batch, objective, handed = make_batch(), ObjectiveSettings(), list[tuple[float, bool]]()
    packed = pack_for_loss(batch, objective, ALONE, budget_tokens=60)
    assert packed.micro_batches > 2

    def backward(loss: Tensor, is_last: bool) -> None:
        handed.append((loss.item(), is_last))

    policy = PolicyModule(make_model())
    passed = backward_pass(policy, batch, packed.rounds, objective, ALONE, backward=backward)
    assert [is_last for _, is_last in handed] == [False] * (packed.micro_batches - 1) + [True]
    assert passed.loss == pytest.approx(sum(loss for loss, _ in handed))
    assert passed.slots >= packed.tokens
    metrics = update_report(packed, passed, ALONE, norm=2.0, rate=0.1).metrics
    assert (metrics["trainer/grad_norm"], metrics["trainer/learning_rate"]) == (2.0, 0.1)
    assert metrics["trainer/padding_share"] == pytest.approx(1 - packed.tokens / passed.slots)


@pytest.mark.parametrize(("loss", "norm"), [(float("nan"), 1.0), (1.0, float("inf"))])
def test_an_update_that_is_not_finite_is_a_collapse_with_its_numbers(loss: float, norm: float) -> None:
    settings = TrainerSettings(learning_rate=1e-3)
    numbers = {"step": 3, "update": 5, "total_updates": 9, "settings": settings}
    require_finite(**numbers, loss=0.0, norm=0.0)
    with pytest.raises(Collapse, match=f"step 3, update 5 of 9: the loss is {loss:g} .* {norm:g}; the weights are as"):
        require_finite(**numbers, loss=loss, norm=norm)
