"""A DeepSpeed engine around the policy: sums instead of means, updates that end where we say, a norm before a step.

DeepSpeed divides a loss by its accumulation steps and averages gradients over ranks. Our losses are divided by the
denominators of the whole update already. So the first division is switched off and the second undone, by a loss that
is multiplied by the number of ranks.

Checkpoints are `checkpoint.py`'s; copies of the weights for generation and export are `gathered.py`'s.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from grpo_core.backends import TrainerSettings
from grpo_core.errors import Problem, RecipeError
from grpo_core.training import PolicyModule
from grpo_trainer_deepspeed.adamw import make_adamw

__all__ = ["Engine", "make_engine", "make_reference", "plain_head", "whole", "whole_together"]


class Engine:
    """The policy, its gradients and its optimiser. Every method is called on all ranks together."""

    scaled_down: bool
    """Whether the gradient of the last step overflowed in fp16, and DeepSpeed has lowered the loss scale or is about
    to: the same update may go well another time."""

    def __init__(
        self, engine: Any, adamw: Any, trained: list[nn.Parameter], settings: TrainerSettings, *, world_size: int
    ) -> None:
        self.deepspeed = engine
        self._adamw = adamw
        self._trained = trained
        self._max_grad_norm = settings.max_grad_norm
        self._world_size = world_size
        self._stage = int(engine.zero_optimization_stage())
        self.scaled_down = False
        self._raise_scale = _raising_later(engine.optimizer) if engine.fp16_enabled() else None
        if self._stage == 0:
            _sum_in_fp32(trained)

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        """The policy's forward."""
        return self.deepspeed(*arguments, **more)

    def train(self, mode: bool) -> None:
        """Training mode of the module, or eval mode."""
        self.deepspeed.train(mode)

    def backward(self, loss: Tensor, is_last: bool) -> None:
        """Add the gradient of a micro-batch; with the last one of the update they are summed over ranks."""
        self.deepspeed.set_gradient_accumulation_boundary(is_last and self._stage > 0)
        self.deepspeed.backward(loss * self._world_size * self._own_scale, scale_wrt_gas=False)
        if is_last and self._stage == 0:
            self._sum_over_ranks()

    def step(self, rate: float, *, withheld: bool) -> float:
        """Clip, step and free the gradients; gives their norm before clipping, which is not finite where nothing was
        stepped. `withheld` steps nothing in any case."""
        for group in self._adamw.param_groups:
            group["lr"] = rate
        norm = self._clip() if self._stage == 0 else None
        self._adamw.withheld = withheld or (norm is not None and not norm.isfinite())
        before = self._scale_state()
        self.deepspeed.step()
        self.scaled_down = self._scale_state() < before
        if not self.deepspeed.was_step_applied():
            return float("nan")
        if self._raise_scale is not None:
            self._raise_scale()
        return torch.as_tensor(self.deepspeed.get_global_grad_norm() if norm is None else norm).item()

    def release(self) -> None:
        """Let go of whole weights that a pass without a step leaves behind in stage 3."""
        if self._stage == 3:
            self.deepspeed.empty_partition_cache()

    def close(self) -> None:
        """Take the hooks off the module."""
        self.deepspeed.destroy()

    def _scale_state(self) -> tuple[float, int]:
        """What an overflow lowers: the loss scale, or how many overflows it takes yet."""
        if self._raise_scale is None:
            return 1.0, 0
        optimizer = self.deepspeed.optimizer
        return float(optimizer.loss_scale), int(getattr(getattr(optimizer, "loss_scaler", None), "cur_hysteresis", 0))

    def _sum_over_ranks(self) -> None:
        """Without ZeRO. DeepSpeed would fill in what no micro-batch of a rank reached, in the type of the weights."""
        for weight in self._trained:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight, dtype=torch.float32)
        self.deepspeed.set_gradient_accumulation_boundary(True)
        self.deepspeed.allreduce_gradients()

    @property
    def _own_scale(self) -> float:
        """What losses are multiplied by here; DeepSpeed does it where it spreads anything."""
        return float(getattr(self.deepspeed.optimizer, "loss_scale", 1.0)) if self._stage == 0 else 1.0

    def _clip(self) -> Tensor:
        """Clip gradients that are still scaled; gives their norm without the scale."""
        norm = nn.utils.get_total_norm([weight.grad for weight in self._trained if weight.grad is not None])
        if self._max_grad_norm is not None:
            nn.utils.clip_grads_with_norm_(self._trained, self._max_grad_norm * self._own_scale, norm)
        return norm / self._own_scale


def make_engine(
    deepspeed: Any, policy: PolicyModule, config: dict[str, Any], settings: TrainerSettings, *, on_cpu: bool
) -> Engine:
    """Spread the policy's weights as the configuration says, and make its optimiser; `on_cpu` is DeepSpeed's own."""
    with _naming_keys():
        _spread(deepspeed, policy, config)
    adamw = make_adamw(policy.parameters(), settings, on_cpu=on_cpu)
    adamw.withheld = True  # of a step with gradients of 0, by which one of its optimisers makes room for moments
    trained = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    # One of its optimisers prints how much memory is used, each time it looks.
    with _naming_keys(), redirect_stdout(io.StringIO()):
        engine, *_ = deepspeed.initialize(model=policy, model_parameters=trained, optimizer=adamw, config=config)
    _keep_head_gathered(deepspeed, policy, config)
    return Engine(engine, adamw, trained, settings, world_size=deepspeed.comm.get_world_size())


def make_reference(deepspeed: Any, policy: PolicyModule, config: Mapping[str, Any]) -> Any:
    """A model that is spread in stage 3 and never trained, as something to call."""
    _spread(deepspeed, policy, config)
    engine, *_ = deepspeed.initialize(model=policy, config=dict(config))
    _keep_head_gathered(deepspeed, policy, config)
    return engine


def plain_head(model: Any) -> Callable[[Tensor], Tensor]:
    """What computes logits in stage 3: the head without DeepSpeed seeing how often it is called. Raises `RecipeError`
    for a head that is made of several modules."""
    head = model.get_output_embeddings()
    if any(head.children()):
        problem = Problem(
            path="trainer.lora",
            message="in stage 3 the head can neither have an adapter nor be trained beside one; leave it out, or set "
            "trainer.options.stage to 2",
        )
        raise RecipeError([problem])
    forward: Callable[[Tensor], Tensor] = head.forward
    return forward


def whole(tensor: Tensor) -> Tensor:
    """The whole of a weight that may be spread, in memory of its own then; called by all ranks together."""
    if not hasattr(tensor, "ds_id"):
        return tensor.detach()
    import deepspeed

    with deepspeed.zero.GatheredParameters([tensor]):
        return tensor.detach().clone()


@contextmanager
def whole_together(weights: Iterable[nn.Parameter]) -> Iterator[None]:
    """Inside, weights that may be spread are whole, on all ranks; for few of them."""
    spread = [weight for weight in weights if hasattr(weight, "ds_id")]
    if not spread:
        yield
        return
    import deepspeed

    with deepspeed.zero.GatheredParameters(spread):
        yield


def _sum_in_fp32(trained: list[nn.Parameter]) -> None:
    """Let autograd add up gradients in fp32, whatever the weights are in."""
    for weight in trained:
        weight.grad = None  # DeepSpeed starts with zeros in the type of the weights
        weight.grad_dtype = torch.float32


def _raising_later(optimizer: Any) -> Callable[[], None]:
    """Keep an optimiser from raising its loss scale within a step; gives what raises it afterwards.

    DeepSpeed 0.19 raises the scale when it has seen that nothing overflowed, and then divides the gradients by it: in
    such a step they would be half of what they are."""
    update = optimizer._update_scale
    if hasattr(optimizer, "loss_scaler"):
        optimizer.loss_scaler.raise_error_at_min_scale = False  # such an update is refused like any other

    def lower(has_overflow: bool = False) -> None:
        if has_overflow:
            update(True)

    optimizer._update_scale = lower
    return lambda: update(False)


@contextmanager
def _naming_keys() -> Iterator[None]:
    """What DeepSpeed does not take of a JSON is an error with its key."""
    try:
        yield
    except ValidationError as error:
        raise RecipeError([_refused(error.title, each) for each in error.errors(include_url=False)]) from error


def _refused(section: str, error: Any) -> Problem:
    key = ".".join(str(part) for part in error["loc"])
    message = f"{section} does not take {key} = {error['input']!r}: {error['msg']}"
    return Problem(path="trainer.options.config", message=message)


def _spread(deepspeed: Any, policy: PolicyModule, config: Mapping[str, Any]) -> None:
    """In stage 3 give every rank its part of rank 0's weights, one after the other: an engine would first bring all of
    them to its device."""
    if config["zero_optimization"]["stage"] == 3:
        deepspeed.zero.Init(module=policy, config_dict_or_path=dict(config))
        device = deepspeed.get_accelerator().current_device_name()
        for buffer in policy.buffers():
            buffer.data = buffer.data.to(device)


def _keep_head_gathered(deepspeed: Any, policy: PolicyModule, config: Mapping[str, Any]) -> None:
    """The head is called once a chunk, and ranks have different numbers of chunks. Its weights are therefore made
    whole by the policy's own forward and backward, once each, and the calls gather nothing."""
    if config["zero_optimization"]["stage"] == 3:
        for weight in policy.model.get_output_embeddings().parameters():
            deepspeed.zero.register_external_parameter(policy, weight)
