"""Chunked log-probabilities: the plain numbers and gradients, and never the logits of all tokens.

Shapes: N tokens, H hidden, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grpo_core.objective import logprobs
from grpo_core.objective.logprobs import TokenLogprobs, chunked_logprobs

N, H, V = 64, 5, 97


def problem(dtype: torch.dtype = torch.float64, n: int = N) -> tuple[Tensor, Tensor, torch.nn.Linear]:
    generator = torch.Generator().manual_seed(n)
    head = torch.nn.Linear(H, V, dtype=dtype)
    with torch.no_grad():
        head.weight.copy_(torch.randn(V, H, generator=generator))
        head.bias.copy_(torch.randn(V, generator=generator))
    hidden_NH = torch.randn(n, H, generator=generator).to(dtype).requires_grad_()
    return hidden_NH, torch.randint(0, V, (n,), generator=generator), head


def plain(hidden_NH: Tensor, targets_N: Tensor, head: Callable[[Tensor], Tensor], temperature: float) -> TokenLogprobs:
    logits_NV = head(hidden_NH)
    logp_NV = (logits_NV / temperature).log_softmax(-1)
    return TokenLogprobs(
        logp_NV.gather(-1, targets_N[:, None])[:, 0],
        -(logp_NV.exp() * logp_NV).sum(-1),
        logits_NV.log_softmax(-1).gather(-1, targets_N[:, None])[:, 0].detach(),
    )


def gradients(numbers: TokenLogprobs, of: list[Tensor]) -> tuple[Tensor, ...]:
    """Of a loss with another factor for every token, entropies included where they have a gradient."""
    weights_N = torch.linspace(-1, 2, len(numbers.logprobs_N), dtype=numbers.logprobs_N.dtype)
    loss = (weights_N * numbers.logprobs_N).sum()
    if numbers.entropies_N.requires_grad:
        loss = loss + (weights_N.flip(0) * numbers.entropies_N).sum()
    return torch.autograd.grad(loss, of)


@pytest.mark.parametrize("chunk_tokens", [1, 7, 20, 1000])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_values_and_gradients_are_those_of_the_plain_computation(chunk_tokens: int, temperature: float) -> None:
    hidden_NH, targets_N, head = problem(n=20)
    ours = chunked_logprobs(
        hidden_NH,
        targets_N,
        head,
        temperature=temperature,
        chunk_tokens=chunk_tokens,
        with_entropy_grad=True,
        raw=True,
    )
    theirs = plain(hidden_NH, targets_N, head, temperature)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    leaves = [hidden_NH, head.weight, head.bias]
    for one, other in zip(gradients(ours, leaves), gradients(theirs, leaves), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("chunk_tokens", [2, 100])
@pytest.mark.parametrize("with_entropy_grad", [True, False])
def test_the_gradients_are_those_of_finite_differences(chunk_tokens: int, with_entropy_grad: bool) -> None:
    hidden_NH, targets_N, head = problem(n=5)
    targets_N = targets_N % 11

    def outputs(hidden_NH: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        numbers = chunked_logprobs(
            hidden_NH,
            targets_N,
            lambda x: torch.tanh(x @ weight.T),
            temperature=0.8,
            chunk_tokens=chunk_tokens,
            with_entropy_grad=with_entropy_grad,
        )
        return numbers[:2] if with_entropy_grad else numbers[:1]

    assert torch.autograd.gradcheck(outputs, (hidden_NH, head.weight[:11]))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 20), chunk_tokens=st.integers(1, 25))
def test_the_chunk_size_changes_nothing(n: int, chunk_tokens: int) -> None:
    hidden_NH, targets_N, head = problem(n=n)
    numbers = [
        chunked_logprobs(hidden_NH, targets_N, head, temperature=1.3, chunk_tokens=size) for size in (chunk_tokens, n)
    ]
    torch.testing.assert_close(numbers[0].logprobs_N, numbers[1].logprobs_N)
    for one, other in zip(*(gradients(each, [hidden_NH, head.weight]) for each in numbers), strict=True):
        torch.testing.assert_close(one, other)


def test_a_frozen_head_gets_no_gradient_and_hidden_states_do() -> None:
    hidden_NH, targets_N, head = problem()
    head.requires_grad_(False)
    numbers = chunked_logprobs(hidden_NH, targets_N, head, temperature=1.0, chunk_tokens=8)
    theirs = plain(hidden_NH, targets_N, head, 1.0)
    torch.testing.assert_close(
        torch.autograd.grad(numbers.logprobs_N.sum(), hidden_NH),
        torch.autograd.grad(theirs.logprobs_N.sum(), hidden_NH),
    )


def test_entropies_and_raw_logprobs_carry_a_gradient_only_when_asked() -> None:
    hidden_NH, targets_N, head = problem()
    numbers = chunked_logprobs(hidden_NH, targets_N, head, temperature=0.5, chunk_tokens=8, raw=True)
    assert numbers.logprobs_N.requires_grad
    assert not numbers.entropies_N.requires_grad
    assert numbers.raw_logprobs_N is not None
    assert not numbers.raw_logprobs_N.requires_grad


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_raw_logprobs_are_at_temperature_one_and_absent_unless_asked(temperature: float) -> None:
    hidden_NH, targets_N, head = problem()
    asked = chunked_logprobs(hidden_NH, targets_N, head, temperature=temperature, chunk_tokens=8, raw=True)
    assert asked.raw_logprobs_N is not None
    torch.testing.assert_close(
        asked.raw_logprobs_N, chunked_logprobs(hidden_NH, targets_N, head, temperature=1.0, chunk_tokens=8)[0].detach()
    )
    unasked = chunked_logprobs(hidden_NH, targets_N, head, temperature=temperature, chunk_tokens=8)
    assert unasked.raw_logprobs_N is None


def test_a_bf16_head_gives_fp32_numbers_and_bf16_gradients() -> None:
    hidden_NH, targets_N, head = problem(torch.bfloat16)
    numbers = chunked_logprobs(hidden_NH, targets_N, head, temperature=1.0, chunk_tokens=8)
    assert numbers.logprobs_N.dtype == numbers.entropies_N.dtype == torch.float32
    numbers.logprobs_N.sum().backward()
    assert hidden_NH.grad is not None
    assert hidden_NH.grad.dtype == torch.bfloat16


def test_no_token_at_all_still_runs_the_head_once() -> None:
    """Ranks with nothing to do must make the same collective calls as the others."""
    calls: list[int] = []
    _, _, head = problem()

    def counting(hidden_CH: Tensor) -> Tensor:
        calls.append(len(hidden_CH))
        return head(hidden_CH)  # type: ignore[no-any-return]

    hidden_NH = torch.zeros(0, H, dtype=torch.float64, requires_grad=True)
    numbers = chunked_logprobs(hidden_NH, torch.zeros(0, dtype=torch.long), counting, temperature=1.0, chunk_tokens=8)
    numbers.logprobs_N.sum().backward()
    assert calls == [0]
    assert head.weight.grad is not None


class Vocabulary(TorchDispatchMode):
    """Watches every operation, and how many numbers of vocabulary-wide tensors are alive after it."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: set[int] = set()
        self.peak = 0
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in self._wide(out):
            self.rows.add(tensor.shape[0])
            storage = tensor.untyped_storage()
            self._alive[storage._cdata] = (StorageWeakRef(storage), storage.nbytes() // tensor.element_size())
        self._alive = {key: entry for key, entry in self._alive.items() if not entry[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._alive.values()))
        return out

    @staticmethod
    def _wide(out: Any) -> Iterator[Tensor]:
        for leaf in tree_leaves(out):
            # [H, V] is the head's weight, transposed; [1, V] the gradient of its bias.
            if isinstance(leaf, Tensor) and leaf.dim() == 2 and leaf.shape[1] == V and leaf.shape[0] not in (1, H):
                yield leaf


@pytest.mark.parametrize("with_entropy_grad", [True, False])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logits_of_more_than_one_chunk_are_never_alive(
    with_entropy_grad: bool, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden_NH, targets_N, head = problem()
    chunk_tokens = 8
    monkeypatch.setitem(logprobs._BLOCK_LOGITS, "cpu", V)
    with Vocabulary() as seen:
        numbers = chunked_logprobs(
            hidden_NH,
            targets_N,
            head,
            temperature=temperature,
            chunk_tokens=chunk_tokens,
            with_entropy_grad=with_entropy_grad,
            raw=True,
        )
        (numbers.logprobs_N.sum() + numbers.entropies_N.sum()).backward()
    assert max(seen.rows) == chunk_tokens
    assert seen.peak <= 2 * chunk_tokens * V + 3 * V, "the chunk's logits, their gradient, and a few rows"


def test_the_watch_sees_the_logits_of_all_tokens_in_the_plain_computation_both_ways() -> None:
    hidden_NH, targets_N, head = problem()
    with Vocabulary() as forward:
        numbers = plain(hidden_NH, targets_N, head, 1.0)
    with Vocabulary() as backward:
        numbers.logprobs_N.sum().backward()
    assert forward.rows == backward.rows == {N}
    assert forward.peak >= N * V


def test_without_gradient_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden_NH, targets_N, head = problem()
    monkeypatch.setitem(logprobs._BLOCK_LOGITS, "cpu", V)
    with torch.no_grad(), Vocabulary() as seen:
        chunked_logprobs(hidden_NH, targets_N, head, temperature=1.0, chunk_tokens=16)
    assert max(seen.rows) == 16
    assert seen.peak <= 16 * V + 3 * V, "the chunk's logits and a few rows"


@settings(max_examples=30, deadline=None)
@given(
    offset=st.floats(-1e4, 1e4),
    scale=st.sampled_from([0.1, 1.0, 8.0, 40.0]),
    peak=st.floats(0, 60),
    temperature=st.sampled_from([1.0, 0.6, 1.7]),
    seed=st.integers(0, 2**20),
)
def test_peaked_rows_and_offsets_lose_no_digit_in_fp32(
    offset: float, scale: float, peak: float, temperature: float, seed: int
) -> None:
    """Against float64, on the same logits: values, and the gradients of log-probability and entropy."""
    generator = torch.Generator().manual_seed(seed)
    logits_NV = torch.randn(24, 1000, generator=generator) * scale + offset
    logits_NV[::2, 7] += peak
    targets_N = torch.where(torch.arange(24) % 4 == 0, 7, torch.randint(0, 1000, (24,), generator=generator))

    def numbers(logits_NV: Tensor) -> tuple[TokenLogprobs, Tensor]:
        leaf_NV = logits_NV.clone().requires_grad_()
        found = chunked_logprobs(
            leaf_NV, targets_N, lambda x: x, temperature=temperature, chunk_tokens=10, with_entropy_grad=True, raw=True
        )
        return found, gradients(found, [leaf_NV])[0]

    ours, gradient_NV = numbers(logits_NV)
    exact = plain(logits_NV.double(), targets_N, lambda x: x, temperature)
    _, exact_gradient_NV = numbers(logits_NV.double())
    for one, other in zip(ours, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=3e-7, atol=3e-6)
    torch.testing.assert_close(gradient_NV.double(), exact_gradient_NV, rtol=1e-5, atol=3e-6)
