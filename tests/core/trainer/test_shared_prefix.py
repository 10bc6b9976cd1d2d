"""Prompts that are forwarded once for their group: the same numbers, and found out where they are not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grpo_core.errors import TrainerError
from grpo_core.recipe.schema import TrainerSettings
from grpo_core.trainer import shared_attention
from grpo_core.trainer.backend import TorchTrainer
from grpo_core.trainer.policy import PolicyModule
from grpo_core.trainer.shared_prefix import SharedPrefix
from grpo_core.trainer.spread import Spread
from grpo_core.types import TrainBatch
from tests.core.rollout.many_models import make
from tests.core.trainer.batches import (
    UNTOUCHED,
    assert_same_gradients,
    gradient_of_update,
    make_batch,
    make_trainer,
    with_numbers,
)
from tests.core.trainer.vl_batches import make_vl_batch
from tests.tiny_models import FAMILIES, Family, make_model, make_model_folder
from tests.vl_models import VL_FAMILIES, VlFamily, make_vl_folder

SHARED = "prompts are forwarded once a group"
REPEATED = "each completion is forwarded with its own prompt"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("shared") / "model")


def decide(model: Any, batch: TrainBatch | None = None, **trainer: Any) -> bool:
    spread = Spread(world_size=1, device=torch.device("cpu"))
    policy = PolicyModule(model)
    shared = SharedPrefix(TrainerSettings(**trainer), policy, spread, None, with_gradient=True)
    return shared.decide(policy, batch or make_batch())


@contextmanager
def counted_tokens(module: nn.Module) -> Iterator[list[int]]:
    """How many tokens each forward inside has embedded."""
    seen: list[int] = []
    embeddings: Any = module.get_input_embeddings()  # type: ignore[operator]
    handle = embeddings.register_forward_hook(lambda module, arguments, output: seen.append(output[..., 0].numel()))
    try:
        yield seen
    finally:
        handle.remove()


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "gemma2"])
def test_known_families_share_prompts_and_say_so(family: Family, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="grpo_core"):
        assert decide(make_model(family))
    assert SHARED in caplog.text
    assert "their gradients within" in caplog.text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Mamba", "not all of its layers are attention"),
        ("Jamba", "not all of its layers are attention"),
        ("Qwen3-Next", "not all of its layers are attention"),
        ("LFM2", "not all of its layers are attention"),
        ("RWKV", "it takes no positions"),
        ("Bloom", "it takes no positions"),
        ("Llama 4", "it has layers of another kind: chunked_attention"),
        ("GPT-OSS", "its attention has sinks"),
    ],
)
def test_what_looks_back_in_another_way_is_recognised(name: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    assert not decide(make(name))
    assert REPEATED in caplog.text
    assert reason in caplog.text


def test_soft_caps_are_recognised(caplog: pytest.LogCaptureFixture) -> None:
    assert not decide(make_model("gemma2"))
    assert "its attention has soft caps" in caplog.text


def test_windows_that_a_family_keeps_to_itself_are_recognised(caplog: pytest.LogCaptureFixture) -> None:
    model = make("Ministral")
    for layer in model.model.layers:
        layer.self_attn.sliding_window = None
    assert not decide(model)
    assert "it does not tell attention functions how wide its sliding windows are" in caplog.text


def test_layers_that_do_not_ask_the_interface_are_recognised(caplog: pytest.LogCaptureFixture) -> None:
    model = make_model("llama")
    attention = model.model.layers[1].self_attn
    ask, own = attention.forward, type(model.config)(**model.config.to_dict())
    own._attn_implementation = "sdpa"

    def deaf(*arguments: Any, **more: Any) -> Any:
        attention.config, shared = own, attention.config
        try:
            return ask(*arguments, **more)
        finally:
            attention.config = shared

    attention.forward = deaf
    assert not decide(model)
    assert "1 of its 2 layers attend through transformers' attention interface" in caplog.text


@pytest.mark.parametrize("window", [4, 8])
def test_windows_that_end_within_a_prompt_are_kept(window: int) -> None:
    assert decide(make("StarCoder2", sliding_window=window))
    assert decide(make("Ministral", sliding_window=window))


def test_numbers_that_differ_switch_it_off_and_say_by_how_much(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    attend = shared_attention._flash
    monkeypatch.setattr(
        shared_attention,
        "_flash",
        lambda *inputs, scale, is_causal: attend(*inputs, scale=2 * scale, is_causal=is_causal),
    )
    batch = make_batch()
    trainer = make_trainer(folder, **UNTOUCHED)
    gradient = gradient_of_update(trainer, batch, tmp_path / "auto")
    assert "log-probabilities with shared prompts are 0." in caplog.text
    assert "(at most 0.001 was expected)" in caplog.text
    monkeypatch.undo()
    off = make_trainer(folder, shared_prefix="off", **UNTOUCHED)
    assert_same_gradients(gradient, gradient_of_update(off, batch, tmp_path / "off"))


def test_gradients_that_differ_switch_it_off_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    backward = shared_attention._flash_backward
    monkeypatch.setattr(
        shared_attention,
        "_flash_backward",
        lambda *inputs, **more: tuple(1.1 * each for each in backward(*inputs, **more)),
    )
    make_trainer(folder).logprobs(make_batch(), "policy")
    assert "gradients with shared prompts are off by 0." in caplog.text
    assert "log-probabilities with" not in caplog.text


def test_where_it_is_required_and_does_not_hold_it_is_an_error(folder: Path) -> None:
    with pytest.raises(TrainerError, match=r"trainer.shared_prefix is require, and GptOss.* its attention has sinks"):
        decide(make("GPT-OSS"), shared_prefix="require")
    with pytest.raises(TrainerError, match=r"Mamba.* cannot share prompts: not all of its layers"):
        decide(make("Mamba"), shared_prefix="require")
    make_trainer(folder, shared_prefix="require").update(make_batch())


def test_it_is_checked_once(folder: Path) -> None:
    trainer, batch = make_trainer(folder), make_batch()
    trainer.update(batch)
    with counted_tokens(trainer.module()) as seen:
        trainer.update(batch)
        trainer.logprobs(batch, "policy")
    assert len(seen) == 2


def unique_tokens(batch: TrainBatch) -> int:
    """Prompts once, completions without their last tokens, which predict nothing."""
    return sum(
        len(group.prompt_ids) + sum(len(member.token_ids) - 1 for member in group.members) for group in batch.groups
    )


@pytest.mark.parametrize("budget", [50, 4000])
def test_every_token_is_forwarded_once(folder: Path, budget: int) -> None:
    """But the prompts of groups that do not fit into one micro-batch."""
    batch = make_batch(members=3, groups=5)
    trainer = make_trainer(folder, micro_batch_tokens=budget, objective={"beta": 0.1})
    trainer.update(with_reference(trainer, batch))
    longest = max(
        len(group.prompt_ids) + sum(len(member.token_ids) - 1 for member in group.members) for group in batch.groups
    )
    with counted_tokens(trainer.module()) as seen:
        trainer.logprobs(batch, "policy")
    assert sum(seen) == unique_tokens(batch) or longest > budget
    assert max(seen) <= max(budget, 27)
    with counted_tokens(trainer.module()) as seen:
        metrics = trainer.update(with_reference(trainer, batch)).metrics
    assert sum(seen) >= metrics["trainer/tokens"] == sum(seen[-int(metrics["trainer/micro_batches"]) :])
    assert metrics["trainer/padding_share"] == 0


def with_reference(trainer: TorchTrainer, batch: TrainBatch) -> TrainBatch:
    return with_numbers(batch, trainer.logprobs(batch, "reference"), "reference_logprobs")


SETTINGS: dict[str, dict[str, Any]] = {
    "one micro-batch": {"micro_batch_tokens": 4000},
    "a group in several micro-batches": {"micro_batch_tokens": 30},
    "activations computed again": {"gradient_checkpointing": True},
    "an adapter": {"lora": {"rank": 4}},
    "frozen embeddings": {"freeze": ("embed_tokens",)},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_gradients_and_log_probabilities_are_those_of_repeated_prompts(folder: Path, name: str, tmp_path: Path) -> None:
    batch = make_batch(groups=4, temperature=0.8)
    found, numbers = [], []
    for way in ("require", "off"):
        trainer = make_trainer(folder, shared_prefix=way, **UNTOUCHED, **SETTINGS[name])
        numbers.append(trainer.logprobs(batch, "policy"))
        found.append(gradient_of_update(trainer, batch, tmp_path / way))
    assert_same_gradients(*found)
    for ours, theirs in zip(numbers[0].logprobs, numbers[1].logprobs, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize("family", VL_FAMILIES)
def test_prompts_with_images_are_shared_with_the_same_gradient(family: VlFamily, tmp_path: Path) -> None:
    folder = make_vl_folder(family, tmp_path / "model")
    batch = make_vl_batch(folder, temperature=0.8)
    found: list[dict[str, Tensor]] = []
    for way in ("require", "off"):
        trainer = make_trainer(folder, shared_prefix=way, micro_batch_tokens=300, **UNTOUCHED)
        found.append(gradient_of_update(trainer, batch, tmp_path / way))
    assert_same_gradients(*found)
