"""Rows of `math_basics` -> samples: the problem is what the user says, everything else stays beside it."""

from __future__ import annotations

from collections.abc import Mapping

from grpo_core.api import BuildContext, Message, Preprocessor, Sample
from grpo_rewards_math.basics.options import MathBasicsOptions

__all__ = ["make"]


def make(options: MathBasicsOptions, context: BuildContext) -> Preprocessor:
    """Build the preprocessor of the dataset `math_basics`; `source` has put the options into words already."""

    def to_sample(row: Mapping[str, object], /) -> Sample:
        columns = dict(row)
        problem = str(columns.pop("problem"))
        return Sample(messages=(Message(role="user", content=problem),), columns=columns)

    return to_sample
