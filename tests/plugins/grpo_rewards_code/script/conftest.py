from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.plugins.grpo_rewards_code.places import Place


@pytest.fixture(params=["nested", pytest.param("alone", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each isolation level in turn."""
    found = Place(request.param)
    yield found
    asyncio.run(found.executor.aclose())
