"""What the comparison of whole steps makes of its measurements."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.step.__main__ import row, table
from benchmarks.step.measure import Mark, Measured, measure, steps_of


def measured(*ends: tuple[float, float], peak_mib: int = 100) -> Measured:
    return Measured(marks=tuple(Mark(wall_s=wall, cpu_s=cpu) for wall, cpu in ends), peak_bytes=peak_mib << 20)


def test_a_step_is_between_two_marks_and_the_first_is_left_out() -> None:
    steps = steps_of(measured((10, 12), (13, 17), (18, 27)), skip=1)
    assert [(step.wall_s, step.cpu_s) for step in steps] == [(3, 5), (5, 10)]


def test_a_row_has_medians_over_turns_and_the_largest_peak() -> None:
    one = row("trl", [measured((1, 1), (3, 4), (6, 8)), measured((1, 1), (5, 9), peak_mib=150)])
    assert (one["steps"], one["wall_s"], one["cpu_s"], one["peak_mib"]) == (3, 3, 4, 150)


@pytest.mark.parametrize("turned", [False, True])
def test_ratios_are_to_ours_wherever_its_row_is(turned: bool) -> None:
    rows = [row("grpoctl", [measured((1, 1), (3, 2))]), row("trl", [measured((1, 1), (9, 5), peak_mib=400)])]
    lines = table(rows[::-1] if turned else rows).splitlines()
    assert "| grpoctl | 1 | 2.0 | 1.0 | 100 | 1.00 | 1.00 | 1.00 |" in lines
    assert "| trl | 1 | 8.0 | 4.0 | 400 | 0.25 | 0.25 | 0.25 |" in lines


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_marks_are_seen_to_the_last(tmp_path: Path) -> None:
    marks = tmp_path / "steps.marks"
    program = f"import time\nfor _ in range(3):\n    time.sleep(0.1)\n    print('x', file=open({str(marks)!r}, 'a'))"
    found = measure([sys.executable, "-c", program], marks, folder=tmp_path, environment={})
    assert len(found.marks) == 3
    assert found.peak_bytes > 1 << 20
