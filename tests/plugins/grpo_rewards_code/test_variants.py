"""The further cases of each fault class have their right outcome, and leave nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.areas.code import check
from tests.plugins.grpo_rewards_code.variants import VARIANTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", VARIANTS, ids=lambda case: case["id"])
def test_the_outcome_is_right(case: dict[str, Any]) -> None:
    assert check(case) is None, case["why"]
