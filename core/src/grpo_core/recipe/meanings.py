"""What the names of a planned run meant: each was some distribution's then, and is looked up there first again.

For `resume --set`, `eval` and `rescore`, which resolve a run's settings anew in an environment where more may be
installed.
"""

from __future__ import annotations

from collections.abc import Iterator

from grpo_core.plugins.namespace import Namespace
from grpo_core.recipe.plan import LaunchPlan, PlannedComponent
from grpo_core.recipe.syntax import KeyPath

__all__ = ["meanings"]


def meanings(plan: LaunchPlan) -> dict[KeyPath, Namespace]:
    """Path of a setting that names a component -> the distribution that it meant, and no other."""
    return {path: _where(*components) for path, components in _named(plan)}


def _where(*components: PlannedComponent | None) -> Namespace:
    meant = {each.distribution for each in components if each is not None and each.distribution is not None}
    return Namespace((frozenset(meant),))


def _named(plan: LaunchPlan) -> Iterator[tuple[KeyPath, tuple[PlannedComponent | None, ...]]]:
    for place, reward in enumerate(plan.rewards):
        yield ("rewards", place, "use"), (reward.component,)
    yield ("rollout", "use"), (plan.rollout,)
    yield ("trainer", "use"), (plan.trainer,)
    yield ("run", "report_to"), plan.trackers
    preprocessors = tuple(dataset.preprocess for dataset in plan.datasets)
    for place, preprocess in enumerate(preprocessors):
        path: KeyPath = ("dataset", "mix", place) if plan.recipe.dataset.mix else ("dataset",)
        yield (*path, "use"), (preprocess,)
        yield (*path, "preprocess"), (preprocess,)
    if plan.recipe.dataset.mix:
        yield ("dataset", "preprocess"), preprocessors
    if plan.evaluation is not None:
        yield ("dataset", "evaluation"), (plan.evaluation.preprocess,)
