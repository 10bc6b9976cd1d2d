"""The torch trainer from outside: gradients, log-probabilities, collapse, and what an update says about itself."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from grpo_core.errors import Collapse, TrainerError
from grpo_core.recipe.schema import ObjectiveSettings
from grpo_core.types import ImageRef, TrainBatch, TrainGroup
from tests.core.model.adapters import load_plain
from tests.core.rollout.many_models import make as make_odd_model
from tests.core.trainer.batches import (
    UNTOUCHED,
    assert_same_gradients,
    gradient_of_update,
    make_batch,
    make_trainer,
    plain_gradient,
    plain_logprobs,
    with_numbers,
)
from tests.tiny_models import DEFAULT_VOCAB_SIZE, FAMILIES, Family, make_model_folder, make_tokenizer

OBJECTIVES: dict[str, dict[str, Any]] = {
    "grpo": {"loss": "grpo"},
    "dr_grpo": {"loss": "dr_grpo"},
    "dapo": {"loss": "dapo"},
    "cispo": {"loss": "cispo"},
    "sapo": {"loss": "sapo"},
    "gspo": {"loss": "gspo"},
    "grpo with KL and entropy": {"loss": "grpo", "beta": 0.1, "entropy_bonus": 0.01},
    "dapo with KL and entropy": {"loss": "dapo", "beta": 0.1, "entropy_bonus": 0.01, "dual_clip": 3.0},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model_folder(tmp_path_factory.mktemp("qwen3") / "model")


def weights(trainer: Any) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.iter_weights()}


def assert_same(actual: dict[str, Tensor], expected: dict[str, Tensor], **tolerance: float) -> None:
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(actual[name], tensor, msg=lambda text, name=name: f"{name}: {text}", **tolerance)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_gradient_is_the_plain_one_however_the_update_is_cut(folder: Path, tmp_path: Path, name: str) -> None:
    objective = OBJECTIVES[name]

    @hypothesis_settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        micro_batch_tokens=st.integers(1, 400),
        chunk_tokens=st.integers(1, 60),
        seed=st.integers(0, 99),
        shared_prefix=st.sampled_from(["require", "off"]),
    )
    def holds(micro_batch_tokens: int, chunk_tokens: int, seed: int, shared_prefix: str) -> None:
        trainer = make_trainer(
            folder,
            objective=objective,
            micro_batch_tokens=micro_batch_tokens,
            shared_prefix=shared_prefix,
            options={"chunk_tokens": chunk_tokens},
            **UNTOUCHED,
        )
        batch = make_batch(seed=seed, temperature=0.7, signal_free=(1,))
        stats = trainer.logprobs(batch, "policy")
        batch = with_numbers(batch, stats, "old_logprobs", "reference_logprobs", "sampling_logprobs", noise=0.2)
        expected = plain_gradient(trainer.module(), batch, ObjectiveSettings(**objective))
        trainer.module().zero_grad()
        assert_same_gradients(gradient_of_update(trainer, batch, tmp_path), expected)

    holds()


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo", "dapo", "cispo", "sapo", "gspo"])
def test_gradients_of_two_ranks_add_up_to_that_of_one(folder: Path, tmp_path: Path, loss: str) -> None:
    def gradient(batch: TrainBatch, name: str) -> dict[str, Tensor]:
        return gradient_of_update(make_trainer(folder, objective={"loss": loss}, **UNTOUCHED), batch, tmp_path / name)

    whole = make_batch()
    first, second, third = whole.groups
    # The second group is split by completions; both shares carry the denominators of the whole update.
    split = [replace(second, members=members) for members in (second.members[:1], second.members[1:])]
    shares = [replace(whole, groups=(first, split[0])), replace(whole, groups=(split[1], third))]
    parts = [gradient(share, f"rank {rank}") for rank, share in enumerate(shares)]
    total = {name: parts[0][name] + parts[1][name] for name in parts[0]}
    assert_same_gradients(total, gradient(whole, "whole"))


def test_skipped_groups_are_counted_and_change_neither_gradient_nor_denominators(folder: Path, tmp_path: Path) -> None:
    batch = make_batch(signal_free=(1, 2))
    trainer = make_trainer(folder, **UNTOUCHED)
    expected = plain_gradient(trainer.module(), batch, ObjectiveSettings())
    trainer.module().zero_grad()
    assert_same_gradients(gradient_of_update(trainer, batch, tmp_path), expected)
    metrics = trainer.update(batch).metrics
    assert metrics["trainer/skipped_sequences"] == 8
    kept = batch.groups[0]
    own = sum(len(member.token_ids) - 1 for member in kept.members[:3])
    assert metrics["trainer/tokens"] == len(kept.prompt_ids) + own
    plain = make_trainer(folder, shared_prefix="off", **UNTOUCHED).update(batch).metrics
    assert plain["trainer/tokens"] == 3 * len(kept.prompt_ids) + own


def test_momentum_goes_on_when_no_group_has_signal(folder: Path) -> None:
    trainer = make_trainer(folder, max_grad_norm=None)
    trainer.update(make_batch())
    before = weights(trainer)
    metrics = trainer.update(make_batch(signal_free=(0, 1, 2))).metrics
    assert metrics["trainer/skipped_sequences"] == 11
    assert (metrics["trainer/micro_batches"], metrics["trainer/tokens"], metrics["trainer/padding_share"]) == (1, 0, 1)
    assert (metrics["trainer/grad_norm"], metrics["trainer/loss"]) == (0, 0)
    assert any(not torch.equal(before[name], tensor) for name, tensor in trainer.iter_weights())


def test_an_update_is_the_same_whether_zero_gradients_were_skipped_or_computed(folder: Path) -> None:
    # An entropy bonus of 1e-30 asks for all rows and adds nothing that fp32 could see.
    skipping, computing = make_trainer(folder), make_trainer(folder, objective={"entropy_bonus": 1e-30})
    for seed, signal_free in enumerate([(), (0, 1, 2), (1,)]):
        batch = make_batch(seed=seed, signal_free=signal_free)
        assert computing.update(batch).metrics["trainer/skipped_sequences"] == 0
        skipping.update(batch)
    assert_same(weights(skipping), weights(computing), rtol=1e-5, atol=1e-6)


def test_without_old_logprobs_the_detached_current_ones_are_meant(folder: Path, tmp_path: Path) -> None:
    batch = make_batch()
    without, given_trainer = make_trainer(folder, **UNTOUCHED), make_trainer(folder, **UNTOUCHED)
    explicit = with_numbers(batch, given_trainer.logprobs(batch, "policy"), "old_logprobs")
    assert_same_gradients(
        gradient_of_update(without, batch, tmp_path / "a"), gradient_of_update(given_trainer, explicit, tmp_path / "b")
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_logprobs_and_entropies_are_those_of_the_plain_model_in_every_family(tmp_path: Path, family: Family) -> None:
    trainer = make_trainer(make_model_folder(tmp_path, family), micro_batch_tokens=64, options={"chunk_tokens": 5})
    batch = make_batch(temperature=0.7, logprob_space="raw")
    stats = trainer.logprobs(batch, "policy")
    assert trainer.policy_path == "chunked"
    assert stats.space_logprobs is not None
    for g, group in enumerate(batch.groups):
        for m, member in enumerate(group.members):
            with torch.no_grad():
                logprobs, entropies = plain_logprobs(trainer.module(), group.prompt_ids, member.token_ids, 0.7)
                raw, _ = plain_logprobs(trainer.module(), group.prompt_ids, member.token_ids)
            torch.testing.assert_close(torch.tensor(stats.logprobs[g][m]), logprobs, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(torch.tensor(stats.entropies[g][m]), entropies, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(torch.tensor(stats.space_logprobs[g][m]), raw, rtol=1e-4, atol=1e-5)


def test_members_without_a_token_have_no_numbers(folder: Path) -> None:
    batch = make_batch(groups=1)
    empty = replace(batch.groups[0].members[0], token_ids=(), sampling_logprobs=())
    group = replace(batch.groups[0], members=(empty, *batch.groups[0].members[1:]))
    stats = make_trainer(folder).logprobs(replace(batch, groups=(group,)), "policy")
    assert stats.logprobs[0][0] == stats.entropies[0][0] == ()
    assert stats.space_logprobs is None


def test_raw_sampling_logprobs_are_compared_with_raw_ones_of_the_policy(folder: Path) -> None:
    trainer = make_trainer(folder)
    batch = make_batch(temperature=0.7, logprob_space="raw")
    stats = trainer.logprobs(batch, "policy")
    assert stats.space_logprobs is not None
    raw = replace(stats, logprobs=stats.space_logprobs)
    assert trainer.update(with_numbers(batch, raw, "sampling_logprobs")).metrics["sampler/gap_max"] < 1e-5


def test_the_reference_model_stays_what_the_policy_was(folder: Path) -> None:
    trainer = make_trainer(folder, objective={"beta": 0.1})
    batch = make_batch()
    before = trainer.logprobs(batch, "reference")
    assert before == trainer.logprobs(batch, "policy")
    trainer.update(with_numbers(batch, before, "reference_logprobs"))
    assert before == trainer.logprobs(batch, "reference")
    assert before != trainer.logprobs(batch, "policy")


def test_without_a_kl_term_no_reference_model_is_loaded(folder: Path) -> None:
    with pytest.raises(TrainerError, match=r"no reference model is loaded\n.*objective\.beta is above 0"):
        make_trainer(folder).logprobs(make_batch(), "reference")


class LargestWithVocabulary(TorchDispatchMode):
    """Records how many rows the largest tensor with the vocabulary in its last dimension has, weights aside."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.rows = 0
        self._weight_numbers = hidden_size * DEFAULT_VOCAB_SIZE

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            has_vocabulary = isinstance(tensor, Tensor) and tensor.shape[-1:] == (DEFAULT_VOCAB_SIZE,)
            if has_vocabulary and tensor.numel() != self._weight_numbers:
                self.rows = max(self.rows, tensor.numel() // DEFAULT_VOCAB_SIZE)
        return out


@pytest.mark.parametrize("objective", [{}, {"entropy_bonus": 0.1, "beta": 0.1}])
def test_no_tensor_of_all_tokens_by_vocabulary_exists_in_an_update(folder: Path, objective: dict[str, Any]) -> None:
    trainer = make_trainer(folder, objective=objective, options={"chunk_tokens": 7})
    batch = make_batch()
    batch = with_numbers(batch, trainer.logprobs(batch, "policy"), "reference_logprobs")  # the self-check is over
    with LargestWithVocabulary(hidden_size=32) as largest:
        trainer.update(batch)
    assert batch.tokens > 60
    assert largest.rows == 7


def test_gradient_checkpointing_gives_the_same_gradient_in_another_way(folder: Path, tmp_path: Path) -> None:
    batch = make_batch()
    plain = make_trainer(folder, **UNTOUCHED)
    recomputing = make_trainer(folder, gradient_checkpointing=True, **UNTOUCHED)
    calls = []
    recomputing.module().model.layers[0].mlp.register_forward_pre_hook(lambda *_: calls.append(None))
    expected = gradient_of_update(plain, batch, tmp_path / "plain")
    recomputing.logprobs(batch, "policy")
    calls.clear()
    assert_same(gradient_of_update(recomputing, batch, tmp_path / "recomputing"), expected, rtol=1e-5, atol=1e-7)
    assert len(calls) == 2  # once forward, once again in the backward pass
    assert not recomputing.module().training


def test_a_model_without_gradient_checkpointing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.Qwen3ForCausalLM.supports_gradient_checkpointing", False)
    with pytest.raises(TrainerError, match=r"Qwen3ForCausalLM has no gradient checkpointing\n.*micro_batch_tokens"):
        make_trainer(folder, gradient_checkpointing=True)


def infinite_advantage(batch: TrainBatch) -> TrainBatch:
    member = replace(batch.groups[0].members[0], advantage=math.inf)
    group = replace(batch.groups[0], members=(member, *batch.groups[0].members[1:]))
    return replace(batch, groups=(group, *batch.groups[1:]))


def test_a_collapse_says_what_happened_and_counts_the_update(folder: Path) -> None:
    trainer = make_trainer(folder, schedule="linear", total_updates=4)
    trainer.update(make_batch(seed=1))
    with pytest.raises(Collapse) as caught:
        trainer.update(infinite_advantage(make_batch()))
    assert "step 1, update 2 of 4: the loss is -inf and the norm of its gradient nan" in caught.value.message
    assert "the weights are as they were before this update" in caught.value.message
    assert "a lower trainer.learning_rate (it is 0.001)" in str(caught.value.hint)
    assert all(parameter.grad is None for parameter in trainer.module().parameters())
    assert trainer.update(make_batch(seed=2)).metrics["trainer/learning_rate"] == pytest.approx(0.5e-3)


def test_a_collapse_leaves_weights_and_momentum_as_if_it_had_not_been_tried(folder: Path) -> None:
    collapsing, regular = make_trainer(folder), make_trainer(folder)
    for trainer in (collapsing, regular):
        trainer.update(make_batch(seed=1))
        if trainer is collapsing:
            with pytest.raises(Collapse):
                trainer.update(infinite_advantage(make_batch()))
        trainer.update(make_batch(seed=2))
    assert_same(weights(collapsing), weights(regular), rtol=0, atol=0)


def test_the_gradient_is_clipped_to_the_norm_that_is_reported_unclipped(folder: Path, tmp_path: Path) -> None:
    batch = make_batch()
    free = gradient_of_update(make_trainer(folder, **UNTOUCHED), batch, tmp_path / "free")
    trainer = make_trainer(folder, **UNTOUCHED | {"max_grad_norm": 0.01})
    clipped = gradient_of_update(trainer, batch, tmp_path / "clipped")
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in free.values()))
    assert norm > 0.1
    assert_same(clipped, {name: gradient * 0.01 / norm for name, gradient in free.items()}, rtol=1e-3, atol=1e-9)
    assert make_trainer(folder).update(batch).metrics["trainer/grad_norm"] == pytest.approx(norm, rel=1e-4)


def test_an_update_reports_every_documented_metric(folder: Path) -> None:
    metrics = make_trainer(folder, micro_batch_tokens=60, shared_prefix="off").update(make_batch()).metrics
    shared = make_trainer(folder, micro_batch_tokens=60).update(make_batch()).metrics
    assert shared.keys() == metrics.keys()
    assert shared["trainer/padding_share"] == 0
    assert {name for name in metrics if name.startswith("trainer/")} == {
        "trainer/loss",
        "trainer/grad_norm",
        "trainer/learning_rate",
        "trainer/micro_batches",
        "trainer/tokens",
        "trainer/padding_share",
        "trainer/skipped_sequences",
    }
    assert metrics["trainer/loss"] == pytest.approx(metrics["policy/loss"])
    assert metrics["trainer/micro_batches"] > 2
    assert 0 < metrics["trainer/padding_share"] < 0.2
    assert all(math.isfinite(value) for value in metrics.values())


def test_the_learning_rate_follows_the_schedule_by_updates(folder: Path) -> None:
    trainer = make_trainer(folder, schedule="linear", warmup_updates=1, total_updates=3)
    rates = [trainer.update(make_batch()).metrics["trainer/learning_rate"] for _ in range(3)]
    assert rates == pytest.approx([0.5e-3, 1e-3, 0.5e-3])


def test_updates_raise_what_is_rewarded(folder: Path) -> None:
    trainer = make_trainer(folder, learning_rate=3e-3)
    batch = make_batch()
    liked = [member for member in batch.groups[0].members[:3] if member.advantage > 0]
    assert liked
    before = trainer.logprobs(batch, "policy")
    for _ in range(5):
        trainer.update(batch)
    after = trainer.logprobs(batch, "policy")
    for m, member in enumerate(batch.groups[0].members[:3]):
        change = sum(after.logprobs[0][m]) - sum(before.logprobs[0][m])
        assert change * member.advantage > 0


def test_weights_stream_under_their_hub_names_and_tied_ones_once(folder: Path) -> None:
    streamed = dict(make_trainer(folder).iter_weights())
    assert "model.embed_tokens.weight" in streamed
    assert "lm_head.weight" not in streamed
    untied = dict(make_trainer(make_model_folder(folder.parent / "llama", "llama")).iter_weights())
    assert "lm_head.weight" in untied
    assert not any(tensor.requires_grad for tensor in untied.values())


def test_a_prompt_with_images_is_refused(folder: Path) -> None:
    group = replace(make_batch().groups[0], images=(ImageRef(source="a.png"),))
    with pytest.raises(TrainerError, match=r"step 1: a prompt has 1 image, and the model reads text only"):
        make_trainer(folder).update(replace(make_batch(), groups=(group,)))


def test_a_prompt_without_tokens_is_refused(folder: Path) -> None:
    group = TrainGroup(prompt_ids=(), members=make_batch().groups[0].members)
    with pytest.raises(TrainerError, match="step 1: a prompt has no tokens"):
        make_trainer(folder).logprobs(replace(make_batch(), groups=(group,)), "policy")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_asking_for_a_gpu_that_is_not_there_says_so(folder: Path) -> None:
    with pytest.raises(TrainerError, match=r"trainer\.options\.device is cuda, and PyTorch sees no GPU here"):
        make_trainer(folder, options={"device": "cuda"})


@pytest.mark.parametrize("name", ["RWKV", "Llama 4"])
def test_odd_families_export_what_was_trained(tmp_path: Path, name: str) -> None:
    """RWKV's deep layers change their weights by mode; Llama 4 calls its backbone by another name than it says."""
    deep: dict[str, Any] = {"num_hidden_layers": 8, "rescale_every": 3} if name == "RWKV" else {}
    make_odd_model(name, **deep).save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    trainer, ids = make_trainer(tmp_path / "model", gradient_checkpointing=True), torch.tensor([[1, 2, 3]])
    trainer.update(make_batch())
    trainer.export(tmp_path / "final")
    with torch.no_grad():
        live, exported = (m(ids, use_cache=False).logits for m in (trainer.module(), load_plain(tmp_path / "final")))
    torch.testing.assert_close(exported, live)


def test_a_closed_trainer_holds_no_weights(folder: Path) -> None:
    trainer = make_trainer(folder)
    trainer.close()
    with pytest.raises(AttributeError):
        trainer.module()
