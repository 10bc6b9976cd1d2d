"""The `torch` trainer: owns the weights, gives log-probabilities, makes optimiser updates.

    TrainBatch → micro-batches → policy → loss → backward, each in turn → sum over ranks → norm → AdamW → UpdateReport

On several ranks every trainer gets its share of the update, and all of them make the same number of micro-batches, the
same step or none: the denominators come with the batch, there is always a micro-batch, and whether to step is decided
once, from numbers that are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from grpo_core.backends import BackendContext
from grpo_core.model.load import without_progress_bars
from grpo_core.model.lora_weights import export, merged_weights, write_adapter
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.trainer import checkpoint
from grpo_core.trainer.images import ImageReader
from grpo_core.trainer.loading import has_reference_model, load_policy, policy_or_reference
from grpo_core.trainer.microbatch import collate
from grpo_core.trainer.optimiser import Optimiser
from grpo_core.trainer.options import TorchTrainerOptions
from grpo_core.trainer.passes import (
    Packed,
    Passed,
    backward_pass,
    pack_for_loss,
    require_finite,
    token_stats,
    update_report,
)
from grpo_core.trainer.place import DTYPES, choose_device, named_tensors
from grpo_core.trainer.policy import PolicyModule
from grpo_core.trainer.rows import DUMMY
from grpo_core.trainer.schedule import learning_rate
from grpo_core.trainer.shards import gather, part, scatter, shard, whole
from grpo_core.trainer.shared_prefix import SharedPrefix
from grpo_core.trainer.spread import Spread
from grpo_core.types import TokenStats, TrainBatch, UpdateReport

__all__ = ["TorchTrainer", "make"]


def make(options: TorchTrainerOptions, context: BackendContext) -> TorchTrainer:
    """Load the policy, and the reference model where the objective has a KL term."""
    return TorchTrainer(options, context)


class TorchTrainer:
    """Implements `TrainerBackend`. Between updates the model is in eval mode and has no gradients."""

    def __init__(self, options: TorchTrainerOptions, context: BackendContext) -> None:
        self._context = context
        self._settings = context.trainer
        self._objective = context.objective
        self._device = choose_device(options.device, context)
        self._spread = Spread(world_size=context.world_size, device=self._device)
        self._is_sharded = options.sharding == "full" and context.world_size > 1
        self._tokenizer = load_tokenizer(context.model)
        self._policy = self._load(options)
        self._images = ImageReader.of(context.model, self._policy.model)
        self._reference = self._load(options, trained=False) if has_reference_model(context) else None
        self._shared = SharedPrefix(
            self._settings, self._policy, self._spread, self._images, with_gradient=not self._is_sharded
        )
        self._optimiser = Optimiser(self._policy.model.named_parameters(), self._settings)
        self._updates = 0

    def _load(self, options: TorchTrainerOptions, *, trained: bool = True) -> PolicyModule:
        compute = DTYPES[self._settings.precision]
        dtype = torch.float32 if self._is_sharded and trained else compute  # what is spread is the masters
        policy = load_policy(
            options, self._context, self._spread, dtype=dtype, trained=trained, may_be_plain=not self._is_sharded
        )
        if not self._is_sharded:
            self._spread.same(policy.to(self._device))
            return policy
        shard(policy, self._device, world_size=self._context.world_size, compute=compute)
        with torch.no_grad():  # what is called first is the root, and generation calls layers
            policy(collate([DUMMY], self._device).inputs, temperature=1.0)
        policy.path = "unchecked"
        scatter(policy)
        return policy

    @torch.no_grad()
    def logprobs(self, batch: TrainBatch, of: Literal["policy", "reference"]) -> TokenStats:
        """Per-token numbers of every member, in the loss or not."""
        self._scatter()
        shared = self._shared.decide(self._policy, batch)
        beta, budget = self._objective.beta, self._settings.token_budget
        with policy_or_reference(of, self._policy, self._reference, model=self._policy.model, beta=beta) as module:
            return token_stats(module, batch, self._spread, budget_tokens=budget, images=self._images, shared=shared)

    def update(self, batch: TrainBatch) -> UpdateReport:
        """One optimiser update. Raises `Collapse` when loss or gradient is not finite, leaving the weights as they
        were; the schedule counts the update all the same."""
        self._scatter()
        packed = pack_for_loss(
            batch,
            self._objective,
            self._spread,
            budget_tokens=self._settings.token_budget,
            routers=self._policy.router_loss,
            shared=self._shared.decide(self._policy, batch),
        )
        rate = learning_rate(self._updates, self._settings, self._context.total_updates)
        self._updates += 1
        self._optimiser.begin()
        try:
            passed = self._forward_backward(batch, packed)
            if not self._is_sharded:  # which sums them as it scatters them
                self._spread.sum_gradients(self._optimiser.gradients())
            norm = self._optimiser.grad_norm()
            require_finite(
                step=batch.step,
                update=self._updates,
                total_updates=self._context.total_updates,
                loss=passed.loss,
                norm=norm.item(),
                settings=self._settings,
            )
            self._optimiser.step(rate, norm)
        finally:
            self._optimiser.end()
        return update_report(packed, passed, self._spread, norm=norm.item(), rate=rate)

    def _forward_backward(self, batch: TrainBatch, packed: Packed) -> Passed:
        def backward(loss: Tensor, is_last: bool) -> None:
            torch.autograd.backward(loss)

        # Hugging Face layers recompute their activations in training mode only. Otherwise eval mode is safer: code that
        # a model's repository ships may hold a dropout that no setting reaches.
        self._policy.train(self._settings.gradient_checkpointing)
        try:
            return backward_pass(
                self._policy,
                batch,
                packed.rounds,
                self._objective,
                self._spread,
                backward=backward,
                routers=self._policy.router_loss,
                images=self._images,
            )
        finally:
            self._policy.eval()

    @property
    def policy_path(self) -> Literal["unchecked", "chunked", "plain"]:
        """How the policy's log-probabilities are computed, as its check on the first batch decided."""
        return self._policy.path

    def module(self) -> nn.Module:
        """The live Hugging Face model, every weight of it whole."""
        if self._is_sharded:
            gather(self._policy)
        model: nn.Module = self._policy.model
        return model

    def _scatter(self) -> None:
        """Undo what `module` did for generation."""
        if self._is_sharded:
            scatter(self._policy)

    def iter_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every weight and saved buffer under its Hugging Face name, tied ones once under the first of their names;
        one at a time where they are spread over ranks."""
        self._scatter()
        model: nn.Module = self._policy.model
        if self._settings.lora is not None:
            yield from merged_weights(model, whole)
        else:
            yield from ((name, whole(tensor)) for name, tensor in named_tensors(model))

    def save(self, directory: Path) -> None:
        """Write weights, AdamW's numbers and the count of updates; rank 0 does, with the others' parts."""
        progress = checkpoint.Progress(updates=self._updates, precision=self._settings.precision)
        target = directory if self._context.rank == 0 else None
        checkpoint.write(target, progress, self._state(), self._optimiser.state(), whole)

    @torch.no_grad()
    def restore(self, directory: Path) -> None:
        """Go back to what `save` wrote, exactly; everything is read and checked before anything changes."""
        progress = checkpoint.read_progress(directory, precision=self._settings.precision)
        state = self._state()
        weights, optimizer = checkpoint.read_tensors(directory, like=state)
        for name, tensor in state.items():
            tensor.copy_(part(weights[name], like=tensor))
        self._optimiser.write_back()
        self._optimiser.load_state(optimizer)
        self._updates = progress.updates

    def _state(self) -> dict[str, Tensor]:
        """The weights in full precision, by name; the tensors themselves. With LoRA those of the adapter."""
        self._scatter()
        if self._settings.lora is not None:
            return dict(self._optimiser.masters)
        named = named_tensors(self._policy.model)
        return {name: self._optimiser.masters.get(name, tensor.detach()) for name, tensor in named}

    def export(self, directory: Path) -> None:
        """Write config, weights, generation config, tokenizer and image processor, as `from_pretrained` reads them."""
        lora, writes = self._settings.lora, self._context.rank == 0
        with without_progress_bars():
            if lora is not None:
                self._scatter()
                model, base, target = self._policy.model, self._context.model.path, directory if writes else None
                export(model, target, base=base, merge=lora.merge, whole=whole)
            elif self._is_sharded:
                self._export_whole(directory, writes=writes)
            elif writes:
                self._policy.model.save_pretrained(directory)
        if writes and self._images is not None:
            self._images.save(directory)
        if writes:
            self._tokenizer.save_pretrained(directory)  # whose chat template may be the run's own

    def export_adapter(self, directory: Path) -> None:
        """Write the LoRA adapter alone, in peft's layout; rank 0 does."""
        self._scatter()
        target = directory if self._context.rank == 0 else None
        write_adapter(self._policy.model, target, self._context.model.path, whole)

    def _export_whole(self, directory: Path, *, writes: bool) -> None:
        """Gather the weights one by one into rank 0's main memory, and write them."""
        dtype, weights = DTYPES[self._settings.precision], {}
        for name, tensor in self.iter_weights():
            if writes:
                weights[name] = tensor.to(dtype if tensor.is_floating_point() else tensor.dtype).cpu()
        if writes:
            self._policy.model.save_pretrained(directory, state_dict=weights)

    def close(self) -> None:
        """Let go of the weights."""
        del self._policy, self._reference, self._optimiser
