"""What a run of several processes exits with."""

from types import SimpleNamespace
from typing import Any

import pytest

from grpo_core.ranks.launcher import _exit_code


def result(*codes: int) -> Any:
    failures = {rank: SimpleNamespace(exitcode=code, timestamp=rank) for rank, code in enumerate(codes)}
    return SimpleNamespace(failures=failures, is_failed=lambda: bool(failures))


@pytest.mark.parametrize(
    ("codes", "interrupted", "expected"),
    [
        ((), False, 0),
        ((3, 4), False, 3),
        ((-9, 3), False, 4),
        ((130, -15), True, 130),
        ((-2, 130), True, 130),  # a second Ctrl-C while Python ends
    ],
)
def test_the_first_that_ended_badly_says_it(codes: tuple[int, ...], interrupted: bool, expected: int) -> None:
    assert _exit_code(result(*codes), interrupted=interrupted) == expected
