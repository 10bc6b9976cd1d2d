"""Numbers in sentences."""

from __future__ import annotations

from grpo_core.report.findings.finding import number, percent


def test_numbers_have_three_digits_and_large_ones_no_exponent() -> None:
    assert [number(value) for value in (0.2141, 12.34, 351.4, 12345.0, 2e-6, 0, -0.5)] == [
        *("0.214", "12.3", "351", "12345", "2e-06", "0", "-0.5")
    ]


def test_small_shares_keep_a_digit() -> None:
    assert [percent(value) for value in (0.5, 0.004, 0.0, 1.0)] == ["50%", "0.4%", "0%", "100%"]
