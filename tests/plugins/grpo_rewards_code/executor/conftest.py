from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.plugins.grpo_rewards_code.places import MODES, Place


@pytest.fixture(params=MODES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each isolation in turn."""
    found = Place(request.param)
    yield found
    asyncio.run(found.executor.aclose())
