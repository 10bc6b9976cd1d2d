"""What a rank does in the tests of the DeepSpeed trainer: the recorded updates of the torch trainer's tests."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from grpo_core.backends import BackendContext, ModelSettings, ObjectiveSettings, RolloutSettings, TrainerSettings
from grpo_core.errors import Collapse
from grpo_core.ranks.ranks import Ranks
from grpo_core.types import TrainBatch
from grpo_trainer_deepspeed.backend import DeepSpeedTrainer, make
from grpo_trainer_deepspeed.options import DeepSpeedOptions
from tests.core.trainer.batches import UNTOUCHED, make_batch, with_numbers
from tests.core.trainer.rank_scenes import Case, cases, model_of, recorded, share_of


def make_trainer(
    folder: Path,
    ranks: Ranks,
    *,
    objective: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    total_updates: int = 10,
    **trainer: Any,
) -> DeepSpeedTrainer:
    """A trainer on the CPU; `trainer` are its settings."""
    context = BackendContext(
        model=ModelSettings(path=str(folder)),
        rollout=RolloutSettings(),
        trainer=TrainerSettings(**{"learning_rate": 1e-3, **trainer}),
        objective=ObjectiveSettings(**(objective or {})),
        total_updates=total_updates,
        rank=ranks.rank,
        world_size=ranks.world_size,
        local_rank=ranks.local_rank,
        local_world_size=ranks.local_world_size,
    )
    given = DeepSpeedOptions(**{"device": "cpu", **(options or {})})
    if given.fp16:
        allow_fp16()
    return make(given, context)


def allow_fp16() -> None:
    """Few CPUs compute fp16 fast, so DeepSpeed refuses it on the others; torch computes it on all of them."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    from deepspeed.accelerator import get_accelerator

    get_accelerator().is_fp16_supported = lambda: True


def moments(trainer: DeepSpeedTrainer) -> dict[str, Tensor]:
    """AdamW's first moments, whole and by name: the gradient of the last update where `adam_beta1` is 0."""
    from deepspeed.utils import safe_get_full_optimizer_state

    engine, found = trainer._engine.deepspeed, dict[str, Tensor]()
    if engine.zero_optimization_stage() in (1, 2):  # DeepSpeed links them once, to those that exist at that time
        engine.optimizer._hp_optimizer_states_linked = False
        engine.optimizer._lazy_init_hp_params_optimizer_state()
    masters = {}
    if engine.zero_optimization_stage() == 0 and (engine.bfloat16_enabled() or engine.fp16_enabled()):
        for halves, whole in zip(engine.optimizer.fp16_groups, engine.optimizer.fp32_groups, strict=True):
            masters |= dict(zip(halves, whole, strict=True))
    for name, weight in trainer._policy.model.named_parameters():
        if weight.requires_grad and engine.zero_optimization_stage() == 0:
            found[name] = engine.optimizer.state[masters.get(weight, weight)]["exp_avg"].clone()
        elif weight.requires_grad:
            found[name] = safe_get_full_optimizer_state(weight, "exp_avg").clone()
    return found


def weights(trainer: DeepSpeedTrainer) -> dict[str, Tensor]:
    """All of them, whole."""
    return {name: tensor.clone() for name, tensor in trainer.iter_weights()}


def run_case(case: Case, ranks: Ranks, model: Path, scratch: Path, options: Mapping[str, Any]) -> dict[str, float]:
    """Two updates: the gradient of the first is saved, the metrics of both and the weights after them are too."""
    settings = {**UNTOUCHED, **case.trainer}
    trainer = make_trainer(model_of(case, model), ranks, objective=case.objective, options=options, **settings)
    batch = share_of(recorded(case, model), case.shared, ranks.rank, ranks.world_size)
    stats = trainer.logprobs(batch, "policy")
    batch = with_numbers(batch, stats, "old_logprobs", "sampling_logprobs")
    if "beta" in case.objective:
        batch = with_numbers(batch, trainer.logprobs(batch, "reference"), "reference_logprobs")
    metrics: dict[str, float] = {}
    for number in (1, 2):
        report = trainer.update(batch)
        metrics |= {f"{number} {name}": value for name, value in report.metrics.items()}
        gradient, whole = moments(trainer), weights(trainer)
        if ranks.is_first:
            save_file(gradient, scratch / f"{case.file}-{number}-moments.safetensors")
            save_file(whole, scratch / f"{case.file}-{number}-weights.safetensors")
    trainer.close()
    return metrics


def run_cases(ranks: Ranks, model: str, scratch: str, chosen: str) -> None:
    """Cases by their names, each with options, as one of several ranks: `{"stage 2": {"grpo, groups": {…}}}`."""
    named = {case.name: case for case in cases("none")}
    for folder, of_folder in json.loads(chosen).items():
        target = Path(scratch) / folder
        target.mkdir(exist_ok=True)
        for name, options in of_folder.items():
            case = replace(named[name], options={})
            metrics = run_case(case, ranks, Path(model), target, options)
            (target / f"{case.file}-{ranks.rank}.json").write_text(json.dumps(metrics))


def restores(ranks: Ranks, model: str, scratch: str, chosen: str) -> None:
    """An update, saved; two trainers go on from there, one of them restored into other weights. Both are kept whole,
    with what the second exports and streams. `chosen` is settings by name: `{"stage 2": {"options": {…}, …}}`."""
    for name, settings in json.loads(chosen).items():
        folder = Path(scratch) / name
        batch = share_of(make_batch(groups=3, members=5, seed=3), "groups", ranks.rank, ranks.world_size)
        other = share_of(make_batch(groups=3, seed=8), "groups", ranks.rank, ranks.world_size)
        through = make_trainer(Path(model), ranks, schedule="cosine", **settings)
        first = through.update(batch)
        into(folder / "saved", ranks, through.save)
        keep(folder / "first", ranks, through)
        second = through.update(batch)
        keep(folder / "through", ranks, through)
        through.close()
        resumed = make_trainer(Path(model), ranks, schedule="cosine", **settings)
        resumed.update(other)
        resumed.restore(folder / "saved")
        assert resumed.update(batch) == second, (first, second)
        keep(folder / "resumed", ranks, resumed)
        shared = resumed.module()  # as for a rollout
        if ranks.is_first:
            whole = {n: w.clone() for n, w in shared.named_parameters()}
            save_file(whole, folder / "shared.safetensors")
        into(folder / "exported", ranks, resumed.export)
        if "lora" in settings:
            into(folder / "adapter", ranks, resumed.export_adapter)
        resumed.close()


def goes_on(ranks: Ranks, model: str, scratch: str, chosen: str) -> None:
    """Trainers on another number of ranks restore what `restores` saved, and make the second update."""
    for name, settings in json.loads(chosen).items():
        folder = Path(scratch) / name
        batch = share_of(make_batch(groups=3, members=5, seed=3), "groups", ranks.rank, ranks.world_size)
        trainer = make_trainer(Path(model), ranks, schedule="cosine", **settings)
        trainer.restore(folder / "saved")
        keep(folder / f"restored on {ranks.world_size}", ranks, trainer)
        report = trainer.update(batch)
        keep(folder / f"went on with {ranks.world_size}", ranks, trainer)
        assert report.metrics["trainer/learning_rate"] < 1e-3  # the schedule goes on too
        trainer.close()


def saves_untrained(ranks: Ranks, model: str, scratch: str) -> None:
    """Stage 3, saved before the first update."""
    trainer = make_trainer(Path(model), ranks)
    into(Path(scratch) / "untrained", ranks, trainer.save)
    trainer.close()


def begins(ranks: Ranks, model: str, scratch: str) -> None:
    """Trainers on another number of ranks begin with what `saves_untrained` saved."""
    trainer = make_trainer(Path(model), ranks)
    before = weights(trainer)
    trainer.restore(Path(scratch) / "untrained")
    after = weights(trainer)
    assert all(torch.equal(before[name], after[name]) for name in before)
    batch = share_of(make_batch(groups=3, members=5, seed=3), "groups", ranks.rank, ranks.world_size)
    assert trainer.update(batch).metrics["trainer/grad_norm"] > 0
    trainer.close()


def into(directory: Path, ranks: Ranks, write: Callable[[Path], None]) -> None:
    """Let all ranks write into a folder that rank 0 has made."""
    if ranks.is_first:
        directory.mkdir(parents=True)
    ranks.gather(None)
    write(directory)
    ranks.gather(None)


def keep(directory: Path, ranks: Ranks, trainer: DeepSpeedTrainer) -> None:
    """Write a trainer's weights and first moments, whole."""
    whole, first_moments = weights(trainer), moments(trainer)
    if ranks.is_first:
        directory.mkdir(parents=True)
        save_file(whole, directory / "weights.safetensors")
        save_file(first_moments, directory / "moments.safetensors")


def updates(ranks: Ranks, model: str, scratch: str, chosen: str) -> None:
    """Two updates for each of the named settings; metrics of the second, moments and weights after it are kept."""
    for name, settings in json.loads(chosen).items():
        unreached = settings.pop("unreached", False)
        trainer = make_trainer(Path(model), ranks, **settings)
        if unreached:
            pass_by_a_weight(trainer._policy.model)
        batch = share_of(make_batch(groups=3, members=5, seed=3), "groups", ranks.rank, ranks.world_size)
        trainer.update(batch)
        report = trainer.update(batch)
        buffers = list(trainer._policy.model.buffers())  # rotary frequencies, which lose positions in bf16
        assert buffers
        assert all(buffer.dtype == torch.float32 for buffer in buffers)
        keep(Path(scratch) / name, ranks, trainer)
        if ranks.is_first:
            (Path(scratch) / name / "metrics.json").write_text(json.dumps(dict(report.metrics)))
        trainer.close()


def pass_by_a_weight(model: Any) -> None:
    """Let the forward of a Qwen3 leave out a norm: its weight has no gradient."""
    model.model.layers[0].self_attn.q_norm.forward = lambda hidden: hidden


def collapses(ranks: Ranks, model: str, scratch: str, chosen: str) -> None:
    """An update that is not finite on one rank is a collapse on all, leaves the weights, and another one follows. The
    settings may hold the `advantage` that breaks it."""
    for name, settings in json.loads(chosen).items():
        advantage = settings.pop("advantage", float("nan"))
        trainer = make_trainer(Path(model), ranks, **settings)
        batch = share_of(make_batch(groups=3, members=5, seed=3), "groups", ranks.rank, ranks.world_size)
        trainer.update(batch)
        before = weights(trainer)
        broken = with_advantage(batch, advantage) if ranks.rank == ranks.world_size - 1 else batch
        try:
            trainer.update(broken)
        except Collapse as error:
            (Path(scratch) / f"{name}-{ranks.rank}.txt").write_text(error.message)
        after = weights(trainer)
        assert all(torch.equal(before[weight], after[weight]) for weight in before), name
        metrics = trainer.update(batch).metrics
        assert math.isfinite(metrics["trainer/loss"]), name
        moved = weights(trainer)
        assert all(weight.isfinite().all() for weight in moved.values()), name
        assert any(not torch.equal(before[weight], moved[weight]) for weight in before), name
        trainer.close()


def with_advantage(batch: TrainBatch, advantage: float) -> TrainBatch:
    """The batch with that advantage everywhere."""
    groups = tuple(
        replace(group, members=tuple(replace(member, advantage=advantage) for member in group.members))
        for group in batch.groups
    )
    return replace(batch, groups=groups)
