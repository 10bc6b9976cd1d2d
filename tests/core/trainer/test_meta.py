"""What can be known of a GPU without one: everything on `meta`, where a tensor made on the wrong device is an error.

No number comes out of it; what is seen is that forward, loss, backward and step mix no devices, and how often something
is copied from the host. Prompts are shared: for padded rows transformers itself reads positions back to look for
sequences that were packed, which `meta` has no answer to.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grpo_core.backends import ObjectiveSettings, TrainerSettings
from grpo_core.objective.loss import Denominators, compute_loss
from grpo_core.rollout.prefix import PrefixDecoder
from grpo_core.rollout.prompts import text_prompts
from grpo_core.trainer.microbatch import collate
from grpo_core.trainer.optimiser import Optimiser
from grpo_core.trainer.policy import PolicyModule
from grpo_core.trainer.rows import Row, rows_of
from grpo_core.types import TrainBatch
from tests.core.trainer.batches import make_batch
from tests.tiny_models import make_model

META = torch.device("meta")


class Copies(TorchDispatchMode):
    """Counts what is copied from one device to another."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        before = {leaf.device.type for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor) and leaf.ndim}
        after = {leaf.device.type for leaf in tree_leaves(out) if isinstance(leaf, Tensor)}
        self.count += bool(before) and bool(after) and before != after
        return out


def make_policy() -> PolicyModule:
    policy = PolicyModule(make_model("qwen3").to(META))
    policy.path = "chunked"  # a comparison would read numbers
    return policy


def update(policy: PolicyModule, rows: list[Row], batch: TrainBatch) -> Tensor:
    """Collate, forward, loss, backward."""
    micro = collate(rows, META, shared=True)
    computed = policy(micro.inputs, temperature=0.7, raw=True)
    loss = compute_loss(micro.loss_inputs(computed), Denominators.of(batch), ObjectiveSettings()).loss
    loss.backward()
    return loss


def test_an_update_mixes_no_devices() -> None:
    policy, batch = make_policy(), make_batch()
    optimiser = Optimiser(policy.model.named_parameters(), TrainerSettings())
    optimiser.begin()
    loss = update(policy, rows_of(batch), batch)
    optimiser.step(1e-3, optimiser.grad_norm())
    assert loss.device == META
    assert all(weight.device == META for weight in policy.parameters())


def test_copies_from_the_host_do_not_grow_with_completions() -> None:
    counts = []
    for members in (6, 18):
        batch = make_batch(groups=3, members=members)
        with Copies() as copies:
            update(make_policy(), rows_of(batch), batch)
        counts.append(copies.count)
    assert counts[0] == counts[1]
    assert counts[0] < 60, "inputs of the model and of the loss; seats and masks of each prompt"


def test_generation_mixes_no_devices() -> None:
    model = make_model("qwen3").to(META)
    decoder = PrefixDecoder(model, max_tokens=4, prefill_tokens=100)
    with torch.no_grad():
        logits_BV = decoder.prefill(text_prompts([(1, 2, 3), (4, 5, 6)]), [2, 3])
        assert (logits_BV.device, len(logits_BV)) == (META, 5)
        logits_BV = decoder.step(torch.zeros(5, dtype=torch.int64, device=META))
    assert logits_BV.device == META
