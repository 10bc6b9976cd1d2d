"""The `deepspeed` trainer: core's passes over micro-batches, around an engine that owns the weights.

    TrainBatch → micro-batches → engine(policy) → loss → engine.backward, each in turn → engine.step → UpdateReport

What an update computes is core's and the same as the `torch` trainer's: micro-batches, losses with the denominators of
the update, metrics. Ranks make the same number of micro-batches, so they take part in the same collectives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from grpo_core.api import TokenStats, TrainBatch, UpdateReport
from grpo_core.backends import BackendContext
from grpo_core.training import (
    ADAPTER_FOLDER,
    DTYPES,
    ImageReader,
    Packed,
    Passed,
    PolicyModule,
    SharedPrefix,
    Spread,
    backward_pass,
    choose_device,
    export,
    has_reference_model,
    learning_rate,
    load_policy,
    load_tokenizer,
    merged_weights,
    named_tensors,
    pack_for_loss,
    policy_or_reference,
    require_finite,
    token_stats,
    update_report,
    without_progress_bars,
    write_adapter,
)
from grpo_trainer_deepspeed import checkpoint
from grpo_trainer_deepspeed.config import deepspeed_config, reference_config
from grpo_trainer_deepspeed.engine import make_engine, make_reference, plain_head, whole, whole_together
from grpo_trainer_deepspeed.gathered import Gathered
from grpo_trainer_deepspeed.options import DeepSpeedOptions
from grpo_trainer_deepspeed.surroundings import prepare

__all__ = ["DeepSpeedTrainer", "make"]


def make(options: DeepSpeedOptions, context: BackendContext) -> DeepSpeedTrainer:
    """Check the configuration, load the policy, and the reference model where the objective has a KL term."""
    return DeepSpeedTrainer(options, context)


class DeepSpeedTrainer:
    """Implements `TrainerBackend`. Between updates the model is in eval mode and has no gradients."""

    def __init__(self, options: DeepSpeedOptions, context: BackendContext) -> None:
        config = deepspeed_config(options, context.trainer)
        self._options, self._context = options, context
        self._settings, self._objective = context.trainer, context.objective
        self._device = choose_device(options.device, context)
        self._spread = Spread(world_size=context.world_size, device=self._device)
        self._is_spread = options.zero_stage == 3
        self._tokenizer = load_tokenizer(context.model)
        self._deepspeed = prepare(self._device, context, fp16=options.fp16)
        self._policy = self._load(trained=True)
        self._images = ImageReader.of(context.model, self._policy.model)
        self._gathered = Gathered(self._policy.model) if self._is_spread else None
        self._engine = make_engine(self._deepspeed, self._policy, config, self._settings, on_cpu=options.cpu_adam)
        self._engine.train(False)
        self._shared = SharedPrefix(
            self._settings, self._policy, self._spread, self._images, with_gradient=not self._is_spread
        )
        self._reference = self._load_reference(config) if has_reference_model(context) else None
        self._updates = 0

    def _load(self, *, trained: bool) -> PolicyModule:
        dtype = torch.float16 if self._options.fp16 else DTYPES[self._settings.precision]
        policy = load_policy(
            self._options,
            self._context,
            self._spread,
            dtype=dtype,
            trained=trained,
            may_be_plain=not self._is_spread,
            project=plain_head if self._is_spread else None,
        )
        if not self._is_spread:  # where they are, rank 0's are spread
            self._spread.same(policy.to(self._device))
        return policy

    def _load_reference(self, config: dict[str, Any]) -> Any:
        policy = self._load(trained=False)
        return make_reference(self._deepspeed, policy, reference_config(config)) if self._is_spread else policy

    def logprobs(self, batch: TrainBatch, of: Literal["policy", "reference"]) -> TokenStats:
        """Per-token numbers of every member, in the loss or not."""
        self._clear()
        beta, budget = self._objective.beta, self._settings.token_budget
        policy: Any = self._engine
        try:
            shared = self._shared.decide(policy, batch)
            with policy_or_reference(of, policy, self._reference, model=self._policy.model, beta=beta) as module:
                return token_stats(
                    module, batch, self._spread, budget_tokens=budget, images=self._images, shared=shared
                )
        finally:
            self._engine.release()
            if self._reference is not None and self._is_spread:
                self._reference.empty_partition_cache()

    def update(self, batch: TrainBatch) -> UpdateReport:
        """One optimiser update. Raises `Collapse` when loss or gradient is not finite, leaving the weights as they
        were; the schedule counts the update all the same."""
        self._clear()
        packed = pack_for_loss(
            batch,
            self._objective,
            self._spread,
            budget_tokens=self._settings.token_budget,
            routers=self._policy.router_loss,
            shared=self._shared.decide(self._engine, batch),
        )
        rate = learning_rate(self._updates, self._settings, self._context.total_updates)
        self._updates += 1
        while True:
            passed = self._forward_backward(batch, packed)
            is_finite = math.isfinite(passed.loss)
            norm = self._engine.step(rate, withheld=not is_finite)
            # The gradient in fp16 may be too large where the gradient is not.
            if math.isfinite(norm) or not is_finite or not self._engine.scaled_down:
                break
        require_finite(
            step=batch.step,
            update=self._updates,
            total_updates=self._context.total_updates,
            loss=passed.loss,
            norm=norm,
            settings=self._settings,
        )
        return update_report(packed, passed, self._spread, norm=norm, rate=rate)

    def _forward_backward(self, batch: TrainBatch, packed: Packed) -> Passed:
        # Hugging Face layers recompute their activations in training mode only; otherwise eval mode is safer.
        self._engine.train(self._settings.gradient_checkpointing)
        try:
            return backward_pass(
                self._engine,
                batch,
                packed.rounds,
                self._objective,
                self._spread,
                backward=self._engine.backward,
                routers=self._policy.router_loss,
                images=self._images,
            )
        finally:
            self._engine.train(False)

    def module(self) -> nn.Module:
        """The live Hugging Face model; in stage 3 a copy, filled until the next pass."""
        if self._gathered is None:
            model: nn.Module = self._policy.model
            return model
        self._gathered.fill(self._policy.model, self._device)
        filled: nn.Module = self._gathered.model
        return filled

    def _clear(self) -> None:
        """Undo what `module` did for generation."""
        if self._gathered is not None:
            self._gathered.clear()

    def iter_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every weight and saved buffer under its Hugging Face name, tied ones once under the first of their names;
        one at a time where they are spread over ranks."""
        model: nn.Module = self._policy.model
        if self._settings.lora is not None:
            yield from merged_weights(model, whole)
        else:
            yield from ((name, whole(tensor)) for name, tensor in named_tensors(model))

    def save(self, directory: Path) -> None:
        """Write what `restore` needs: every rank its own part."""
        self._clear()
        checkpoint.write(self._engine.deepspeed, directory, self._spread.agrees, trained_only=self._trains_part)
        if self._context.rank == 0:
            checkpoint.write_progress(directory, self._progress())

    def restore(self, directory: Path) -> None:
        """Go back to what `save` wrote: exactly with as many processes, up to rounding with another number of them.
        What does not fit is refused before anything changes."""
        self._clear()
        now = self._progress()
        then = checkpoint.read_progress(directory, now)
        is_converted = then.world_size != now.world_size and now.stage > 0
        if is_converted and then.updates == now.updates == 0:
            return  # both are the model as it was loaded; AdamW has no numbers yet that could be put together
        if is_converted:
            if self._context.rank == 0:
                checkpoint.convert(directory)
            self._spread.agrees(True)  # the others wait for it
        engine = self._engine.deepspeed
        checkpoint.read(engine, directory, trained_only=self._trains_part, converted=is_converted)
        self._updates = then.updates

    @property
    def _trains_part(self) -> bool:
        """Whether some weights are frozen; a checkpoint leaves these out."""
        return self._settings.lora is not None or bool(self._settings.freeze)

    def _progress(self) -> checkpoint.Progress:
        return checkpoint.Progress(
            updates=self._updates,
            world_size=self._context.world_size,
            stage=self._options.zero_stage,
            precision="fp16" if self._options.fp16 else self._settings.precision,
        )

    def export(self, directory: Path) -> None:
        """Write config, weights, generation config, tokenizer and the files of the image processor, as
        `from_pretrained` reads them."""
        lora = self._settings.lora
        if lora is not None and not lora.merge:
            self.export_adapter(directory / ADAPTER_FOLDER)
        else:
            self._export_model(directory)
        if self._context.rank == 0:
            if self._images is not None:
                self._images.save(directory)
            self._tokenizer.save_pretrained(directory)  # whose chat template may be the run's own

    def _export_model(self, directory: Path) -> None:
        lora, writes, model = self._settings.lora, self._context.rank == 0, self._policy.model
        if self._gathered is not None:
            self._gathered.fill(model, torch.device("cpu"), keep=writes)
            model = self._gathered.model
        if writes:
            with without_progress_bars():
                if lora is None:
                    model.save_pretrained(directory)
                else:
                    export(model, directory, base=self._context.model.path, merge=True)
        self._clear()

    def export_adapter(self, directory: Path) -> None:
        """Write the LoRA adapter alone, in peft's layout; rank 0 does."""
        model = self._policy.model
        with whole_together(weight for weight in model.parameters() if weight.requires_grad):
            if self._context.rank == 0:
                write_adapter(model, directory, self._context.model.path)

    def close(self) -> None:
        """Let go of the weights."""
        self._engine.close()
        del self._policy, self._reference, self._engine, self._gathered
