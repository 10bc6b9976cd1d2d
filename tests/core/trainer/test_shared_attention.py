"""Attention over a row of prompts and completions, against a mask over the whole row, in float64."""

from __future__ import annotations

from itertools import accumulate
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from grpo_core.trainer import shared_attention
from grpo_core.trainer.layout import Layout, Prefix
from grpo_core.trainer.shared_attention import Sharing, recomputing, sharing, way_on

SHAPES = st.lists(
    st.tuples(st.integers(1, 9), st.lists(st.integers(0, 7), min_size=1, max_size=4)), min_size=1, max_size=3
)


def layout_of(shape: list[tuple[int, list[int]]]) -> Layout:
    starts = [0, *accumulate(prompt + sum(own) for prompt, own in shape)]
    prefixes = tuple(Prefix(start, prompt, tuple(own)) for start, (prompt, own) in zip(starts, shape, strict=False))
    return Layout((), prefixes)


def sees(shape: list[tuple[int, list[int]]], window: int | None) -> Tensor:
    """[T, T] By definition: a completion's token sees its prompt and what is before it in the completion."""
    names = [
        (g, sequence, offset)
        for g, (prompt, own) in enumerate(shape)
        for sequence, first, tokens in [(-1, 0, prompt), *((s, prompt, n) for s, n in enumerate(own))]
        for offset in range(first, first + tokens)
    ]

    def seen(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
        is_before = one[0] == other[0] and other[1] in (-1, one[1]) and other[2] <= one[2]
        return is_before and (window is None or one[2] - other[2] < window)

    return torch.tensor([[seen(one, other) for other in names] for one in names])


def vectors(tokens: int, heads: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    # As layers make them: heads beside the tokens, seen from the other side.
    return torch.randn(1, tokens, heads, 8, dtype=dtype, generator=generator).transpose(1, 2).requires_grad_()


def attend(layout: Layout, way: str, window: int | None, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    state = Sharing(SimpleNamespace(_attn_implementation="eager"), layout)
    if way == "parts":
        parts: Tensor = shared_attention._ByParts.apply(query, key, value, state, 0.3)  # type: ignore[no-untyped-call]
        return parts
    return getattr(shared_attention, f"_{way}")(query, key, value, state, 0.3, window)  # type: ignore[no-any-return]


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.sampled_from([(4, 4), (4, 2), (3, 1)]), st.integers(0, 2**20))
@pytest.mark.parametrize(("way", "window"), [("parts", None), ("sdpa", None), ("sdpa", 4)])
def test_answers_and_gradients_are_those_of_a_mask_over_the_row(
    way: str, window: int | None, shape: list[tuple[int, list[int]]], heads: tuple[int, int], seed: int
) -> None:
    mask_TT = sees(shape, window)
    inputs = [vectors(len(mask_TT), count, seed + i) for i, count in enumerate((heads[0], heads[1], heads[1]))]
    expected = functional.scaled_dot_product_attention(*inputs, attn_mask=mask_TT, scale=0.3, enable_gqa=True)
    found = attend(layout_of(shape), way, window, *inputs)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    asked = vectors(len(mask_TT), heads[0], seed + 9).detach()
    for ours, theirs in zip(
        torch.autograd.grad(found, inputs, asked), torch.autograd.grad(expected, inputs, asked), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(SHAPES, st.sampled_from([None, 3]))
def test_the_tree_that_flex_attention_is_given_is_that_mask(
    shape: list[tuple[int, list[int]]], window: int | None
) -> None:
    mask_TT = sees(shape, window)
    places = torch.arange(len(mask_TT))
    tree = shared_attention._tree(layout_of(shape), window, torch.device("cpu"))
    nothing = torch.tensor(0)
    torch.testing.assert_close(tree(nothing, nothing, places[:, None], places[None]), mask_TT)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_gives_the_same_answers() -> None:
    shape = [(5, [3, 0, 7]), (9, [0]), (3, [4])]
    with torch.no_grad():  # PyTorch has no backward pass of it on a CPU
        inputs = [vectors(31, count, count).detach() for count in (6, 2, 2)]
        for window in (None, 4):
            expected = attend(layout_of(shape), "sdpa", window, *inputs)
            torch.testing.assert_close(attend(layout_of(shape), "flex", window, *inputs), expected, rtol=0, atol=1e-12)


def test_bf16_is_as_near_to_float64_as_one_kernel_over_the_row() -> None:
    shape = [(30, [20, 11, 25])]
    mask_TT = sees(shape, None)
    exact = [vectors(86, count, count) for count in (6, 2, 2)]
    low = [each.detach().bfloat16().requires_grad_() for each in exact]
    rounded = [each.detach().double().requires_grad_() for each in low]
    asked = vectors(86, 6, 5).detach().bfloat16()

    def whole(*inputs: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(*inputs, attn_mask=mask_TT, scale=0.3, enable_gqa=True)

    def numbers(answer: Tensor, inputs: list[Tensor]) -> list[Tensor]:
        return [answer, *torch.autograd.grad(answer, inputs, asked.to(answer.dtype))]

    truth = numbers(whole(*rounded), rounded)
    one_kernel = numbers(whole(*low), low)
    by_parts = numbers(attend(layout_of(shape), "parts", None, *low), low)
    for true, one, parts in zip(truth, one_kernel, by_parts, strict=True):
        assert (parts.double() - true).norm() < 2 * (one.double() - true).norm() + 1e-3


def test_the_config_has_its_own_attention_again_behind_a_pass_and_a_recomputation_finds_the_layout() -> None:
    config = SimpleNamespace(_attn_implementation="sdpa")
    before = recomputing()
    with sharing(Sharing(config, layout_of([(2, [1])]))) as state:
        _, again = recomputing()
        assert config._attn_implementation == shared_attention.NAME
    assert config._attn_implementation == "sdpa"
    with again as found:
        assert (found, config._attn_implementation) == (state, shared_attention.NAME)
    with before[1] as nothing:
        assert (nothing, config._attn_implementation) == (None, "sdpa")


def test_each_device_has_its_way() -> None:
    assert way_on(torch.device("cpu")) == "parts"
    assert way_on(torch.device("meta")) == "sdpa"
