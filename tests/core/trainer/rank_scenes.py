"""What a rank does in the tests of trainers on several ranks: recorded updates, each shared out in some way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from grpo_core.ranks.ranks import Ranks
from grpo_core.trainer.backend import TorchTrainer
from grpo_core.types import TrainBatch
from tests.core.trainer.batches import UNTOUCHED, make_batch, make_routed_folder, make_trainer, with_numbers
from tests.core.trainer.vl_batches import PICTURES, make_vl_batch
from tests.tiny_models import make_model_folder
from tests.vl_models import make_vl_folder

PRESETS = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "gspo")
IMAGES = "images"
"""The folder of the model that reads them."""
SHARED_OUT = ("groups", "one has none", "a group is split")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One update, and how it is trained on."""

    name: str
    shared: str
    objective: dict[str, Any] = field(default_factory=dict)
    trainer: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    routed: bool = False
    """Whether the model is a mixture of experts whose routers have a loss of their own."""
    has_images: bool = False
    """Whether prompts have images, and the model reads them."""

    @property
    def file(self) -> str:
        return self.name.replace(" ", "-")


def cases(sharding: str) -> Iterator[Case]:
    """Every preset, every way to share out, and what else has a part in a gradient."""
    options = {"sharding": sharding}
    for number, preset in enumerate(PRESETS):
        shared = SHARED_OUT[number % 3]
        yield Case(name=f"{preset}, {shared}", shared=shared, objective={"loss": preset}, options=options)
    extra = {"loss": "dapo", "beta": 0.1, "entropy_bonus": 0.01, "dual_clip": 3.0}
    for shared in SHARED_OUT:
        yield Case(name=f"with KL and entropy, {shared}", shared=shared, objective=extra, options=options)
    small = {"micro_batch_tokens": 40, "gradient_checkpointing": True}
    yield Case(name="small micro-batches", shared="groups", trainer=small, options=options)
    yield Case(name="routers", shared="one has none", trainer=small, options=options, routed=True)
    yield Case(name="images", shared="groups", objective=extra, options=options, has_images=True)
    one = "one has text alone"
    yield Case(name=f"images, {one}", shared=one, options=options, has_images=True)
    yield Case(name=f"images cut small, {one}", shared=one, trainer=small, options=options, has_images=True)
    yield Case(name="a frozen tower", shared=one, trainer={"freeze": ["vision"]}, options=options, has_images=True)
    adapted = {**small, "lora": {"rank": 4, "vision": True}}
    yield Case(name="adapters in the tower", shared=one, trainer=adapted, options=options, has_images=True)
    yield Case(name="images of a split group", shared="a group is split", options=options, has_images=True)
    lora = {"lora": {"rank": 4}}
    yield Case(name="LoRA", shared="a group is split", objective=extra, trainer=lora, options=options)


def make_models(folder: Path) -> Path:
    """The model of most cases; beside it that of those that are routed, and that of those with images."""
    make_vl_folder("qwen3_vl", folder / IMAGES)
    make_routed_folder(folder / "routed")
    return make_model_folder(folder / "model")


def model_of(case: Case, model: Path) -> Path:
    """The folder of a case's model."""
    if case.has_images:
        return model.parent / IMAGES
    return model.parent / "routed" if case.routed else model


def recorded(case: Case, model: Path) -> TrainBatch:
    """Prompts and completions of mixed lengths; one group without a signal."""
    groups = 1 if case.shared == "a group is split" else 3
    if case.has_images:
        pictures = PICTURES[:1] if groups == 1 else PICTURES
        return make_vl_batch(model_of(case, model), pictures, members=5, seed=3, temperature=0.9)
    return make_batch(groups=groups, members=5, seed=3, signal_free=(1,), temperature=0.9)


def share_of(batch: TrainBatch, shared: str, rank: int, world_size: int) -> TrainBatch:
    """A rank's part; the denominators stay those of the whole update."""
    if world_size == 1:
        return batch
    if shared == "groups":
        groups = batch.groups[rank::world_size]
    elif shared == "one has text alone":
        groups = tuple(group for group in batch.groups if bool(group.images) == (rank == 0))
    elif shared == "one has none":
        groups = batch.groups if rank == 0 else ()
    else:
        group = batch.groups[0]
        groups = (replace(group, members=group.members[rank::world_size]),)
    return replace(batch, groups=groups)


def run_case(case: Case, model: Path, scratch: Path, place: Mapping[str, int]) -> dict[str, float]:
    """Two updates: the gradient of the first is saved, the metrics of both and the weights after them are too."""
    settings = {**UNTOUCHED, **case.trainer}
    trainer = make_trainer(
        model_of(case, model), objective=case.objective, options=case.options, place=place, **settings
    )
    batch = share_of(recorded(case, model), case.shared, place["rank"], place["world_size"])
    stats = trainer.logprobs(batch, "policy")
    batch = with_numbers(batch, stats, "old_logprobs", "sampling_logprobs")
    if "beta" in case.objective:
        batch = with_numbers(batch, trainer.logprobs(batch, "reference"), "reference_logprobs")
    first = trainer.update(batch).metrics
    save(trainer, scratch / f"{case.file}-first", place)
    second = trainer.update(batch).metrics
    save(trainer, scratch / f"{case.file}-second", place)
    trainer.close()
    return {**{f"1 {name}": value for name, value in first.items()}, **{f"2 {n}": v for n, v in second.items()}}


def save(trainer: TorchTrainer, directory: Path, place: Mapping[str, int]) -> None:
    if place["rank"] == 0:
        directory.mkdir(parents=True)
    trainer.save(directory)


def run_cases(ranks: Ranks, model: str, scratch: str, sharding: str) -> None:
    """All cases, as one of several ranks."""
    place = {
        "rank": ranks.rank,
        "world_size": ranks.world_size,
        "local_rank": ranks.local_rank,
        "local_world_size": ranks.local_world_size,
    }
    for case in cases(sharding):
        metrics = run_case(case, Path(model), Path(scratch), place)
        ranks.gather(None)
        (Path(scratch) / f"{case.file}-{ranks.rank}.json").write_text(json.dumps(metrics))


def restores(ranks: Ranks, model: str, scratch: str, sharding: str) -> None:
    """An update, saved; two trainers go on from there, one of them restored into other weights; they stay equal."""
    folder = Path(scratch) / f"{sharding}-{ranks.world_size}"
    place = {"rank": ranks.rank, "world_size": ranks.world_size}
    has_images = Path(model).name == IMAGES

    def share(seed: int) -> TrainBatch:
        made = make_vl_batch(Path(model), seed=seed) if has_images else make_batch(groups=3, members=5, seed=seed)
        return share_of(made, "one has text alone" if has_images else "groups", ranks.rank, ranks.world_size)

    batch = share(3)
    settings = {"precision": "bf16", "schedule": "cosine"}
    through = make_trainer(Path(model), options={"sharding": sharding}, place=place, **settings)
    through.update(batch)
    save(through, folder / "saved", place)
    ranks.gather(None)
    resumed = make_trainer(Path(model), options={"sharding": sharding}, place=place, **settings)
    resumed.update(share(8))
    resumed.restore(folder / "saved")
    assert through.update(batch) == resumed.update(batch)
    save(through, folder / "through", place)
    save(resumed, folder / "resumed", place)
    resumed.module()  # as for a rollout
    if ranks.is_first:
        (folder / "exported").mkdir()
    resumed.export(folder / "exported")
    whole = {name: tensor.clone() for name, tensor in resumed.iter_weights()}
    if ranks.is_first:
        save_file(whole, folder / "streamed.safetensors")


def moments(directory: Path) -> dict[str, Any]:
    """The gradient of the last update."""
    saved = load_file(directory / "optimizer.safetensors")
    return {name.removeprefix("exp_avg/"): value for name, value in saved.items() if name.startswith("exp_avg/")}
