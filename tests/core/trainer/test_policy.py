"""The policy module: chunked and plain path agree, padding changes nothing, an unknown head is found out."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grpo_core.model.load import disable_dropout
from grpo_core.trainer.microbatch import MicroBatch, collate
from grpo_core.trainer.policy import PolicyModule
from grpo_core.trainer.rows import rows_of
from tests.core.trainer.batches import make_batch, plain_logprobs
from tests.tiny_models import FAMILIES, Family, make_model


def micro_batch(**batch: Any) -> MicroBatch:
    return collate(rows_of(make_batch(**batch)), torch.device("cpu"))


class OwnScale(nn.Module):
    """Wraps a model's output embedding the way a new family might: with a scale that its config does not name."""

    def __init__(self, projection: nn.Module) -> None:
        super().__init__()
        self.projection = projection

    def forward(self, hidden: Tensor) -> Tensor:
        scaled: Tensor = self.projection(hidden) * 0.5
        return scaled


def unknown_family() -> Any:
    model = make_model("qwen3", tie_word_embeddings=False)
    projection = model.lm_head
    model.lm_head = OwnScale(projection)
    model.get_output_embeddings = lambda: projection
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_changes_no_log_probability_in_any_family(family: Family) -> None:
    policy = PolicyModule(make_model(family))
    micro = micro_batch()
    assert micro.slots > sum(row.length for row in micro.rows)
    with torch.no_grad():
        together = policy(micro.inputs, temperature=1.0).logprobs_N
        alone = [policy(collate([row], torch.device("cpu")).inputs, temperature=1.0).logprobs_N for row in micro.rows]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-4, atol=1e-5)


def test_the_first_batch_decides_for_the_chunked_path_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    policy = PolicyModule(make_model())
    assert policy.path == "unchecked"
    with caplog.at_level(logging.INFO):
        policy(micro_batch().inputs, temperature=1.0)
        policy(micro_batch(seed=1).inputs, temperature=1.0)
    assert policy.path == "chunked"
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "Qwen3ForCausalLM: chunked log-probabilities, within" in caplog.text


def test_a_head_that_is_not_what_it_seems_falls_back_loudly_to_the_models_own_logits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = unknown_family()
    policy = PolicyModule(model)
    micro = micro_batch(temperature=0.7)
    computed = policy(micro.inputs, temperature=0.7, raw=True)
    assert policy.path == "plain"
    assert "Qwen3ForCausalLM: chunked log-probabilities are" in caplog.text
    assert "Its logits are used instead: slower" in caplog.text
    rows = [(row.prompt_ids, row.member.token_ids) for row in micro.rows]
    expected = [plain_logprobs(model, *row, temperature=0.7) for row in rows]
    raw = torch.cat([plain_logprobs(model, *row)[0] for row in rows])
    torch.testing.assert_close(computed.logprobs_N, torch.cat([one[0] for one in expected]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(computed.entropies_N, torch.cat([one[1] for one in expected]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(computed.raw_logprobs_N, raw, rtol=1e-4, atol=1e-5)


def test_both_paths_have_the_same_gradient() -> None:
    gradients = []
    micro = micro_batch()
    for path in ("chunked", "plain"):
        policy = PolicyModule(make_model("gemma2"), chunk_tokens=10)
        policy.path = path  # type: ignore[assignment]
        computed = policy(micro.inputs, temperature=0.7, with_entropy_grad=True)
        (computed.logprobs_N.sum() + computed.entropies_N.sum()).backward()
        gradients.append({name: parameter.grad for name, parameter in policy.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-3, atol=1e-4)


def test_a_model_without_positions_to_give_works_too() -> None:
    import transformers

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = transformers.BloomConfig(vocab_size=272, hidden_size=16, n_layer=1, n_head=2)
        model = transformers.BloomForCausalLM(config).eval()
    disable_dropout(model)
    policy = PolicyModule(model)
    micro = micro_batch()
    computed = policy(micro.inputs, temperature=1.0)
    assert policy.path == "chunked"
    expected = [plain_logprobs(model, row.prompt_ids, row.member.token_ids)[0] for row in micro.rows]
    torch.testing.assert_close(computed.logprobs_N, torch.cat(expected), rtol=1e-4, atol=1e-5)


def test_weights_that_are_not_finite_do_not_make_it_doubt_the_path(caplog: pytest.LogCaptureFixture) -> None:
    model = make_model()
    model.model.norm.weight.data.fill_(float("nan"))
    policy = PolicyModule(model)
    policy(micro_batch().inputs, temperature=1.0)
    assert policy.path == "chunked"
    assert not caplog.records


def test_a_bf16_model_passes_its_own_check() -> None:
    policy = PolicyModule(make_model(dtype=torch.bfloat16))
    assert policy(micro_batch().inputs, temperature=1.0).logprobs_N.dtype == torch.float32
    assert policy.path == "chunked"


def test_chunks_hold_about_64_million_logits_by_default() -> None:
    assert PolicyModule(make_model(vocab_size=2**16))._chunk_tokens == 1024
