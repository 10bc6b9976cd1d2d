"""Where a reward runs, in words: for those who want to know what can happen to their machine.

Place in the flow: bound reward → **place**, shown before anything is scored.
"""

from __future__ import annotations

from grpo_core.plugins.faults import describe
from grpo_core.recipe.plan import PlannedReward
from grpo_core.reward.call import is_async
from grpo_core.reward.check import BoundReward

__all__ = ["own_words", "place_of"]


def place_of(reward: BoundReward) -> str:
    """`in a killable worker, 5 s an answer`, and after a semicolon what the reward says itself."""
    own = own_words(reward.function)
    where = _process(reward.planned, awaited=is_async(reward.function))
    return f"{where}; {own}" if own else where


def own_words(function: object) -> str | None:
    """What a reward object says of its isolation (`DescribedReward`), on one line; None: it says nothing."""
    say = getattr(function, "describe", None)
    if not callable(say):
        return None
    try:
        return " ".join(str(say()).split()) or None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's code; a listing must not end with it
        return f"its describe() fails: {describe(error)}"


def _process(planned: PlannedReward, *, awaited: bool) -> str:
    if planned.runs_in == "worker":
        limit = "" if planned.budget_s is None else f", {planned.budget_s:g} s an answer"
        return f"in a killable worker{limit}"
    return "in this process, on the event loop" if awaited else "in this process"
