from __future__ import annotations

import ctypes

import pytest

from grpo_core.loop.sizes import compared, forget_peak, peak_bytes, resident_bytes

MIB = 1 << 20


@pytest.mark.parametrize(("estimated", "is_off"), [(76, False), (132, False), (74, True), (135, True)])
def test_an_estimate_that_is_off_by_more_than_a_third_is_told_as_such(estimated: int, is_off: bool) -> None:
    line, off = compared(estimated * MIB, 100 * MIB)
    assert line.startswith(f"memory: 100 MiB at the peak of the first step, {estimated} MiB were estimated")
    assert off == is_off
    assert ("trainer.micro_batch_tokens" in line) == is_off


def test_the_peak_is_that_since_it_was_forgotten() -> None:
    def take(mebibytes: int) -> None:
        ctypes.memset(ctypes.create_string_buffer(mebibytes * MIB), 1, mebibytes * MIB)

    take(200)
    forget_peak(on_gpu=False)
    before = peak_bytes(on_gpu=False)
    assert abs(before - resident_bytes()) < 64 * MIB
    take(100)
    assert 90 * MIB < peak_bytes(on_gpu=False) - before < 150 * MIB
