from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from grpo_core.errors import RolloutError
from grpo_core.model.load import load_model
from grpo_core.recipe.schema import ModelSettings
from grpo_core.rollout.backend import TransformersRollout
from grpo_core.types import FinishReason, RolloutGroup, RolloutRequest
from tests.core.rollout.make import backend, request
from tests.tiny_models import END_ID, Family, make_model_folder


def loaded(folder: Path) -> Any:
    return load_model(ModelSettings(path=str(folder)), torch.float32)


def sharing(tmp_path: Path, family: Family = "qwen3", **options: Any) -> tuple[TransformersRollout, Any]:
    """A backend and the module it shares."""
    folder = make_model_folder(tmp_path / "model", family)
    rollout, module = backend(folder, **options), loaded(folder)
    rollout.share(module, 0)
    return rollout, module


def by_seed(groups: Sequence[RolloutGroup]) -> dict[int, list[tuple[int, ...]]]:
    return {group.request.seed: [completion.token_ids for completion in group.completions] for group in groups}


MIXED = [
    request((1, 2, 3), n=3, seed=1, max_tokens=30),
    request((4,), n=1, seed=2, max_tokens=30),
    request(tuple(range(40)), n=5, seed=3, max_tokens=30),
    request((5, 6, 7, 8, 9, 10), n=2, seed=4, max_tokens=30),
]


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"])
def test_logprobs_are_those_of_a_forward_over_prompt_and_completion(tmp_path: Path, family: Family) -> None:
    rollout, module = sharing(tmp_path, family)
    requests = [request(r.prompt_ids, n=r.n, seed=r.seed, max_tokens=30, temperature=0.8) for r in MIXED]
    for group in rollout.generate(requests):
        prompt = group.request.prompt_ids
        for completion in group.completions:
            ids = torch.tensor([prompt + completion.token_ids])
            with torch.no_grad():
                logprobs = (module(ids).logits[0, len(prompt) - 1 : -1] / 0.8).log_softmax(-1)
            expected = logprobs.gather(-1, ids[0, len(prompt) :, None])[:, 0]
            torch.testing.assert_close(torch.tensor(completion.sampling_logprobs), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("max_sequences", [1, 4, 100])
def test_a_request_gives_the_same_tokens_alone_and_among_others(tmp_path: Path, max_sequences: int) -> None:
    rollout, _ = sharing(tmp_path, max_sequences=max_sequences)
    together = by_seed(list(rollout.generate(MIXED)))
    alone = {seed: ids for r in MIXED for seed, ids in by_seed(list(rollout.generate([r]))).items()}
    assert together == alone


def test_completion_i_does_not_depend_on_how_many_are_asked_for(tmp_path: Path) -> None:
    rollout, _ = sharing(tmp_path)
    few, many = (by_seed(list(rollout.generate([request(n=n)])))[1] for n in (2, 6))
    assert few == many[:2]


def test_another_seed_gives_other_completions(tmp_path: Path) -> None:
    rollout, _ = sharing(tmp_path)
    found = by_seed(list(rollout.generate([request(seed=1), request(seed=2)])))
    assert found[1] != found[2]


def test_first_tokens_are_as_frequent_as_the_models_softmax_says(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    draws = 4000
    (group,) = rollout.generate([request(n=draws, max_tokens=1)])
    tokens = torch.tensor([completion.token_ids[0] for completion in group.completions])
    with torch.no_grad():
        expected = draws * module(torch.tensor([group.request.prompt_ids])).logits[0, -1].double().softmax(-1)
    found = torch.bincount(tokens, minlength=len(expected)).double()
    often = expected >= 5
    # The rare ones count as one, so that every expected number is large enough for chi-square.
    found = torch.cat([found[often], found[~often].sum()[None]])
    expected = torch.cat([expected[often], expected[~often].sum()[None]])
    degrees = len(expected) - 1
    assert degrees > 50
    assert ((found - expected) ** 2 / expected).sum() < degrees + 4 * math.sqrt(2 * degrees)


def test_greedy_gives_the_likeliest_tokens(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    (group,) = rollout.generate([request(n=1, max_tokens=6, temperature=0.0)])
    ids = list(group.request.prompt_ids)
    for token in group.completions[0].token_ids:
        with torch.no_grad():
            assert module(torch.tensor([ids])).logits[0, -1].argmax() == token
        ids.append(token)


def test_groups_keep_their_requests_and_sizes(tmp_path: Path) -> None:
    rollout, _ = sharing(tmp_path)
    groups = list(rollout.generate(MIXED))
    assert {id(group.request) for group in groups} == {id(r) for r in MIXED}
    assert all(len(group.completions) == group.request.n for group in groups)


def test_an_end_token_ends_a_completion_and_is_no_text(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    with torch.no_grad():  # the likeliest token is the end token, by far
        module.model.norm.weight.zero_()
        module.model.norm.weight[0] = 1.0
        module.model.embed_tokens.weight[:, 0] = 0.0
        module.model.embed_tokens.weight[END_ID, 0] = 1e4
        module.model.embed_tokens.weight[72, 0] = 1.0
    (group,) = rollout.generate([request((72,), n=2, max_tokens=5, temperature=0.0)])
    for completion in group.completions:
        assert (completion.token_ids, completion.text) == ((END_ID,), "")
        assert completion.finish_reason is FinishReason.STOP


def test_generating_leaves_the_trainers_module_as_it_was(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    module.train()
    module.model.layers[0].mlp.eval()
    module.activation_checkpointing_enable()
    modes = {name: m.training for name, m in module.named_modules()}
    weights = {name: value.clone() for name, value in module.state_dict().items()}
    generator = rollout.generate(MIXED)
    next(generator)
    # In the middle of it, too: rewards may use torch while others are still decoded.
    assert torch.is_grad_enabled()
    assert {name: m.training for name, m in module.named_modules()} == modes
    assert module.config._attn_implementation == "sdpa"
    list(generator)
    assert all(torch.equal(weights[name], value) for name, value in module.state_dict().items())


def test_a_module_in_training_mode_with_checkpointing_generates_the_same(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    expected = by_seed(list(rollout.generate(MIXED)))
    module.train()
    module.activation_checkpointing_enable()
    assert by_seed(list(rollout.generate(MIXED))) == expected


@pytest.mark.parametrize("family", ["qwen3", "gemma3"])
def test_training_goes_on_after_generation_with_the_gradient_it_had_before(tmp_path: Path, family: Family) -> None:
    rollout, module = sharing(tmp_path, family)
    module.train()

    def gradient() -> torch.Tensor:
        module.zero_grad()
        module(torch.tensor([[1, 2, 3, 4]]), use_cache=False).logits.log_softmax(-1)[..., 5].sum().backward()
        return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])

    before = gradient()
    list(rollout.generate(MIXED))
    assert torch.equal(before, gradient())


def test_shared_weights_that_change_change_what_is_generated(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    before = by_seed(list(rollout.generate(MIXED)))
    with torch.no_grad():
        module.model.embed_tokens.weight.mul_(-1.0)
    rollout.share(module, 5)
    groups = list(rollout.generate(MIXED))
    assert by_seed(groups) != before
    assert {completion.policy_version for group in groups for completion in group.completions} == {5}


def test_streamed_weights_give_what_shared_ones_give(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    with torch.no_grad():
        module.model.embed_tokens.weight.mul_(1.5)
    expected = by_seed(list(rollout.generate(MIXED)))
    streaming = backend(tmp_path / "model")
    streaming.load_weights(module.state_dict().items(), 2)
    groups = list(streaming.generate(MIXED))
    assert by_seed(groups) == expected
    assert groups[0].completions[0].policy_version == 2


def test_streamed_weights_are_a_copy(tmp_path: Path) -> None:
    _, module = sharing(tmp_path)
    streaming = backend(tmp_path / "model")
    streaming.load_weights(module.state_dict().items(), 1)
    before = by_seed(list(streaming.generate(MIXED)))
    with torch.no_grad():
        module.model.embed_tokens.weight.zero_()
    assert by_seed(list(streaming.generate(MIXED))) == before


def test_loading_does_not_write_into_a_module_that_was_shared(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    before = module.lm_head.weight.clone()
    other = {name: torch.zeros_like(value) for name, value in module.state_dict().items()}
    rollout.load_weights(other.items(), 1)
    assert torch.equal(module.lm_head.weight, before)


def test_generating_without_weights_says_what_to_call(tmp_path: Path) -> None:
    rollout = backend(make_model_folder(tmp_path / "model"))
    with pytest.raises(RolloutError, match=r"there are no weights yet[\s\S]*share or load_weights"):
        rollout.generate([request()])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_noticed_at_once(tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match=r"rollout.options.device is cuda, and PyTorch sees no GPU"):
        backend(make_model_folder(tmp_path / "model"), device="cuda")


def test_a_split_group_draws_what_it_draws_undivided(tmp_path: Path) -> None:
    rollout, _ = sharing(tmp_path)
    whole, part = request(n=5), replace(request(n=2), first_member=3)
    assert by_seed(list(rollout.generate([part])))[1] == by_seed(list(rollout.generate([whole])))[1][3:]


def test_after_close_there_are_no_weights(tmp_path: Path) -> None:
    rollout, _ = sharing(tmp_path)
    rollout.close()
    with pytest.raises(RolloutError, match="there are no weights yet"):
        rollout.generate([request()])


def test_a_bad_request_fails_before_any_is_answered(tmp_path: Path) -> None:
    rollout, _ = sharing(tmp_path)
    with pytest.raises(RolloutError, match="up to 300 do not fit into the model's context of 256"):
        rollout.generate([request(), request(max_tokens=300)])


def test_nan_weights_name_the_sample(tmp_path: Path) -> None:
    rollout, module = sharing(tmp_path)
    with torch.no_grad():
        module.model.layers[1].mlp.up_proj.weight[0, 0] = math.nan
    with pytest.raises(RolloutError, match=r"sample 'train-1': the model's logits are not finite"):
        list(rollout.generate([request()]))


def test_no_requests_give_no_groups(tmp_path: Path) -> None:
    rollout, _ = sharing(tmp_path)
    assert list(rollout.generate([])) == []


def test_requests_of_different_parameters_are_answered_together(tmp_path: Path) -> None:
    rollout, _ = sharing(tmp_path)
    requests: list[RolloutRequest] = [request(seed=1, max_tokens=2), request(seed=2, max_tokens=5, top_k=1)]
    lengths = {g.request.seed: max(len(c.token_ids) for c in g.completions) for g in rollout.generate(requests)}
    assert lengths == {1: 2, 2: 5}


@pytest.mark.parametrize("bad", [{"max_sequences": 0}, {"prefill_tokens": 0}, {"device": "tpu"}, {"max_seqs": 4}])
def test_options_are_checked(tmp_path: Path, bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        backend(tmp_path, **bad)
