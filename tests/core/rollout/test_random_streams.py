from __future__ import annotations

import numpy as np
import pytest

from grpo_core.rollout.random_streams import stream_keys, uniforms


def test_numbers_are_those_of_splitmix64() -> None:
    # The reference generator with seed 0 gives e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f.
    key = np.array([0], dtype=np.uint64)
    words = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)
    assert [float(uniforms(key, t)[0]) for t in range(3)] == [(word >> 11) / 2**53 for word in words]


def test_a_stream_is_a_function_of_seed_and_index_alone() -> None:
    alone = stream_keys([(7, 3)])
    among_others = stream_keys([(7, 0), (9, 3), (7, 3)])
    assert uniforms(alone, 5)[0] == uniforms(among_others, 5)[2]


def test_seeds_and_indices_do_not_run_into_each_other() -> None:
    keys = stream_keys((seed, index) for seed in (-1, 1, 11, 2**63) for index in (0, 1, 11))
    assert len(set(keys.tolist())) == 12


def test_numbers_are_at_least_0_and_below_1() -> None:
    numbers = uniforms(np.arange(200_000, dtype=np.uint64), 0)
    assert numbers.dtype == np.float64
    assert 0.0 <= numbers.min() < 1e-4
    assert 1 - 1e-4 < numbers.max() < 1.0


@pytest.mark.parametrize("along", ["stream", "position"])
def test_numbers_are_uniform_along_a_stream_and_across_streams(along: str) -> None:
    if along == "stream":
        keys = stream_keys([(3, 0)])
        numbers = np.concatenate([uniforms(keys, t) for t in range(20_000)])
    else:
        numbers = uniforms(stream_keys((3, index) for index in range(20_000)), 0)
    counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
    assert ((counts - 1000) ** 2 / 1000).sum() < 43.8  # chi-square, 19 degrees of freedom, p = 0.001


def test_neighbouring_numbers_of_a_stream_are_not_correlated() -> None:
    keys = stream_keys((0, index) for index in range(20_000))
    assert abs(np.corrcoef(uniforms(keys, 0), uniforms(keys, 1))[0, 1]) < 0.025
