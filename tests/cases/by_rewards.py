"""Cases about several rewards, their returns, totals, advantages and metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_core.advantage.estimate import estimate
from grpo_core.errors import GrpoError
from grpo_core.recipe.plan import PlannedComponent, PlannedReward
from grpo_core.recipe.schema import AdvantageSettings
from grpo_core.reward.scoring import reward_metrics
from grpo_core.types import RolloutGroup, ScoredGroup
from tests.cases.decode import completion_text
from tests.cases.expect import ClearError, difference
from tests.cases.scored import captured_warnings, group_of, plain, plan_reward, score, score_one

__all__ = [
    "check_advantages",
    "check_aligned_columns",
    "check_mean_over_steps",
    "check_returned",
    "check_reward_by_length",
    "check_routing",
    "check_totals",
]

_FILE = Path(__file__).with_name("stand_ins.py")
_ESTIMATORS = [
    AdvantageSettings(),
    AdvantageSettings(scale="none"),
    AdvantageSettings(scale="batch"),
    AdvantageSettings(estimator="rloo"),
    AdvantageSettings(estimator="reinforce_plus_plus"),
]


def check_totals(case: Mapping[str, Any]) -> str | None:
    """The totals of told scores."""
    scored, _warnings = _score_told(case)
    return difference({"totals": [total for one in scored for total in one.totals]}, case)


def check_advantages(case: Mapping[str, Any]) -> str | None:
    """The advantages of told scores, whichever way they are estimated."""
    scored, warnings = _score_told(case)
    expected = case["expected"]
    if expected.get("warns") and not warnings:
        return "nobody was warned"
    for settings in _ESTIMATORS:
        found = estimate([one.totals for one in scored], settings).advantages
        values = [advantage for group in found for advantage in group]
        wrong = _wrong_advantages(values, expected["advantages"], expected.get("tolerance", 1e-9))
        if wrong:
            return f"{settings.estimator}, scale {settings.scale}: {wrong} in {values}"
    return None


def check_aligned_columns(case: Mapping[str, Any]) -> str | None:
    """Which column values come with which completions."""
    texts = ["x"] * case["num_generations"]
    groups = [group_of(texts, row, row=i) for i, row in enumerate(case["dataset"])]
    scored = score([plan_reward(f"{_FILE}:remembers")], groups)
    return difference({"solution_seen": [v for one in scored for v in one.records["solution_seen"]]}, case)


def check_returned(case: Mapping[str, Any]) -> str | None:
    """What becomes of a function's return: the error at the default ceiling, else the outcomes."""
    told = dict(case["reward_function"])
    name = told.pop("name")
    reward = _reward(name, "behave", options_model=f"{_FILE}:Behaviour", options=told)
    group = group_of(["x"] * case["num_completions"])
    try:
        score([reward], [group])
    except GrpoError as error:
        if name not in str(error):
            return f"the message does not name the function: {error}"
        return difference(ClearError(str(error)), case)
    with captured_warnings() as warnings:
        (scored,) = score([reward], [group], max_failed_share=1.0)
    values = [None if isinstance(plain(o), ClearError) else o for o in scored.outcomes[name]]
    return difference({"values": values, "warns": bool(warnings)}, case)


def check_mean_over_steps(case: Mapping[str, Any]) -> str | None:
    """The mean of a reward over steps, where it does not apply in all of them."""
    scored, _warnings = _score_told({"rewards": {"r": case["step_means"]}, "weights": [1.0], "num_generations": 1})
    for one in scored:
        mean = reward_metrics([one])["rewards/r/mean"]
        if mean != one.outcomes["r"][0]:
            return f"a step of {one.outcomes} has the mean {mean}"
    return difference({"mean": reward_metrics(scored)["rewards/r/mean"]}, case)


def check_reward_by_length(case: Mapping[str, Any]) -> str | None:
    """A reward with parameters, for a completion of given tokens or of a given number of them."""
    ids = case.get("completion_ids") or list(range(case.get("completion_tokens", 0)))
    columns = {"solution": case["solution"]} if "solution" in case else {}
    group = group_of([completion_text(case)], columns, token_ids=[ids])
    return difference(score_one(case["reward"], group, case["params"]), case)


def check_routing(case: Mapping[str, Any]) -> str | None:
    """Rows of several tasks in one batch: what each reward says of each."""
    rewards = [plan_reward(name) for name in case["expected"]]
    columns = {name: None for row in case["dataset"] for name in row}
    rows = zip(case["completions"], case["dataset"], strict=True)
    groups = [group_of([text], {**columns, **row}, row=i) for i, (text, row) in enumerate(rows)]
    scored = score(rewards, groups)
    names = zip(case["expected"], rewards, strict=True)
    outcome = {name: [one.outcomes[reward.name][0] for one in scored] for name, reward in names}
    return difference(outcome, case)


def _score_told(case: Mapping[str, Any]) -> tuple[Sequence[ScoredGroup], list[str]]:
    """Score completions with rewards that say what the case tells, and what was warned of."""
    columns: Mapping[str, Sequence[Any]] = case["rewards"]
    rewards = [
        _reward(name, "told", weight=weight, columns={"scores": name})
        for name, weight in zip(columns, case["weights"], strict=True)
    ]
    count = len(next(iter(columns.values())))
    with captured_warnings() as warnings:
        return score(rewards, _told_groups(columns, case.get("num_generations", count))), warnings


def _told_groups(columns: Mapping[str, Sequence[Any]], size: int) -> list[RolloutGroup]:
    count = len(next(iter(columns.values())))
    return [
        group_of(
            [str(member) for member in range(size)],
            {name: scores[start : start + size] for name, scores in columns.items()},
            row=start // size,
        )
        for start in range(0, count, size)
    ]


def _reward(name: str, attribute: str, **changes: Any) -> PlannedReward:
    component = {
        "name": f"{_FILE}:{attribute}",
        "target": f"{_FILE}:{attribute}",
        "options_model": changes.pop("options_model", None),
        "options": changes.pop("options", {}),
    }
    plain_function = plan_reward(f"{_FILE}:remembers")
    return plain_function.model_copy(
        update={"name": name, "component": PlannedComponent.model_validate(component), **changes}
    )


def _wrong_advantages(values: Sequence[float], wanted: Mapping[str, Sequence[int]], tolerance: float) -> str | None:
    if not all(map(math.isfinite, values)):
        return "not finite"
    for kind, positions in wanted.items():
        chosen = [values[position] for position in positions]
        right = {
            "zero": all(abs(value) <= tolerance for value in chosen),
            "positive": all(value > tolerance for value in chosen),
            "negative": all(value < -tolerance for value in chosen),
            "sum_of_others_zero": abs(math.fsum(chosen)) <= tolerance,
        }[kind]
        if not right:
            return f"{kind} {list(positions)} does not hold"
    return None
