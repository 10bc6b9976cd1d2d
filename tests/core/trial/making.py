"""Scorers and samples for the tests of trying rewards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpo_core.recipe.plan import PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_core.trial.scoring import open_scorer
from grpo_core.types import BuildContext, Message, Sample
from tests.core.reward.making import planned as planned_target

REWARDS = Path(__file__).with_name("rewards_to_try.py")
CONTEXT = BuildContext()
SETTINGS = ScoringSettings()


def planned(attribute: str, **changes: Any) -> PlannedReward:
    """A planned reward of rewards_to_try.py."""
    return planned_target(f"{REWARDS}:{attribute}", **changes)


def samples(*rows: Mapping[str, object], question: str = "6*7?") -> list[Sample]:
    """Samples with these columns."""
    return [
        Sample(messages=(Message(role="user", content=question),), columns=dict(row), id=f"train-{place:06d}")
        for place, row in enumerate(rows)
    ]


def answers(*values: object) -> list[Sample]:
    """Samples with a column `solution`."""
    return samples(*({"solution": value} for value in values))


@contextmanager
def scorer(attribute: str, columns: Sequence[str] = ("solution",), **changes: Any) -> Iterator[Scorer]:
    """A scorer of one reward."""
    with open_scorer([planned(attribute, **changes)], SETTINGS, columns, CONTEXT) as made:
        yield made
