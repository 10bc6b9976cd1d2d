from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grpo_rollout_vllm import fingerprint
from grpo_rollout_vllm.fingerprint import Fingerprint, tensor_sums


def text_of(*tensors: tuple[str, torch.Tensor]) -> str:
    made = Fingerprint()
    for name, tensor in tensors:
        made.add(name, tensor)
    return made.text


def test_the_sums_are_those_of_eight_byte_words_plain_and_by_place() -> None:
    assert tensor_sums(torch.tensor([5, 7, 11])) == (23, 5 + 2 * 7 + 3 * 11)
    assert tensor_sums(torch.tensor([1, 2], dtype=torch.uint8)) == (1 + 256 * 2, 1 + 256 * 2)
    assert tensor_sums(torch.tensor([-1])) == (2**64 - 1, 2**64 - 1)


def test_sums_wrap_around_and_do_not_depend_on_how_a_tensor_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.randint(-(2**62), 2**62, (1000,), generator=torch.Generator().manual_seed(0))
    words = tensor.tolist()
    expected = sum(words) % 2**64, sum(place * word for place, word in enumerate(words, start=1)) % 2**64
    assert tensor_sums(tensor) == expected
    monkeypatch.setattr(fingerprint, "_CHUNK_WORDS", 7)
    assert tensor_sums(tensor) == expected


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40), st.data())
def test_one_changed_value_changes_the_fingerprint(values: list[float], data: st.DataObject) -> None:
    tensor = torch.tensor(values, dtype=torch.float32)
    place = data.draw(st.integers(0, len(values) - 1))
    changed = tensor.clone()
    changed.view(torch.int32)[place] ^= 1 << data.draw(st.integers(0, 30))
    assert text_of(("w", tensor)) != text_of(("w", changed))


def test_the_order_of_tensors_does_not_matter_and_names_types_and_shapes_do() -> None:
    one, two = ("a", torch.arange(4.0)), ("b", torch.arange(4.0, 8.0))
    assert text_of(one, two) == text_of(two, one)
    different = [
        text_of(one),
        text_of(("a", two[1]), ("b", one[1])),
        text_of(("a", one[1].view(2, 2)), two),
        text_of(("a", one[1].view(torch.int32)), two),
    ]
    assert len({text_of(one, two), *different}) == 5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.int8])
def test_a_tensor_is_the_same_however_it_lies_in_memory(dtype: torch.dtype) -> None:
    base = torch.arange(60).to(dtype)
    part = base[3:33].view(5, 6)
    assert tensor_sums(part) == tensor_sums(part.clone())
    assert tensor_sums(part.T) == tensor_sums(part.T.contiguous())


def test_an_empty_tensor_has_sums_too() -> None:
    assert tensor_sums(torch.empty(0)) == (0, 0)
