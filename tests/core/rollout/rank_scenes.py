"""What a rank does in the tests of how a model decodes."""

from __future__ import annotations

from grpo_core.ranks.ranks import Ranks
from grpo_core.rollout.choose import slowest_way


def agree(ranks: Ranks) -> None:
    """None has chosen; one has; both have, another way each."""
    assert slowest_way(None, ranks.world_size) is None
    assert slowest_way(2 if ranks.is_first else None, ranks.world_size) == 2
    assert slowest_way(ranks.rank, ranks.world_size) == 1
