"""Curves of a run: every metric of metrics.jsonl over the steps, whole for the findings, thinned for the page."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grpo_core.report.completions import StepSummary
from grpo_core.report.lines import Row
from grpo_core.report.run import RunFolder, step_of
from grpo_core.report.thinning import neighbours
from grpo_core.report.trends import Curve

__all__ = ["MOST_POINTS", "PageCurves", "bad_values", "curve", "metric_names", "page_curves", "weighted"]

MOST_POINTS = 600
"""Of a curve in the page. A longer one has a point for several steps: their mean, lowest and highest."""
_DIGITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCurves:
    """Curves as the page gets them."""

    json: dict[str, Any]
    """`curves` and `evaluations`, each with `steps`, `values` (name -> [steps]), `low` and `high` where thinned, and
    `quantiles` (name -> [steps][5])."""
    text: str
    """A sentence about thinning; empty: there was none."""


def metric_names(run: RunFolder) -> list[str]:
    """Every metric the run recorded, in order of appearance."""
    return list(dict.fromkeys(name for row in run.rows for name in row if name != "step"))


def curve(run: RunFolder, name: str) -> Curve:
    """A metric where it has a finite value."""
    values = ((step_of(row), _finite(row.get(name))) for row in run.rows)
    return Curve.of((step, value) for step, value in values if value is not None)


def bad_values(run: RunFolder) -> list[tuple[int, str]]:
    """(step, name) of values that are NaN or infinite."""
    return [
        (step_of(row), name)
        for row in run.rows
        for name, value in row.items()
        if isinstance(value, float) and not math.isfinite(value)
    ]


def weighted(run: RunFolder) -> dict[str, str]:
    """`weighted/<reward>` -> the reward, where totals are sums of several: what each puts into the mean total."""
    if run.plan is None or run.plan.recipe.scoring.reduce != "sum" or len(run.plan.rewards) < 2:
        return {}
    return {f"weighted/{reward.name}": reward.name for reward in run.plan.rewards}


def page_curves(run: RunFolder, summaries: Sequence[StepSummary]) -> PageCurves:
    """Thin all curves of a run alike, and its evaluations, which are few, for themselves."""
    by_step = {summary.step: summary for summary in summaries}
    rows: list[Row] = [{**row, **_contributions(run, row)} for row in run.rows if not _only_evaluated(row)]
    evaluated = [row for row in run.rows if any(map(_is_evaluation, row))]
    names = [*metric_names(run), *weighted(run)]
    trained = _thin(rows, [name for name in names if not _is_evaluation(name)])
    trained["quantiles"] = _quantiles(neighbours(rows, MOST_POINTS), by_step)
    json = {
        "curves": trained,
        "evaluations": {**_thin(evaluated, list(filter(_is_evaluation, names))), "quantiles": {}},
    }
    size = -(-len(rows) // MOST_POINTS)
    text = f"Each point of a curve stands for {size} steps: their mean, with their range behind it." if size > 1 else ""
    return PageCurves(json=json, text=text)


def _is_evaluation(name: str) -> bool:
    return name.startswith("eval/")


def _only_evaluated(row: Row) -> bool:
    """Whether it is the line before the first step."""
    return all(_is_evaluation(name) for name in row if name != "step")


def _thin(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Any]:
    parts = neighbours(rows, MOST_POINTS)
    columns = {name: [_known(part, name) for part in parts] for name in names}
    columns = {name: column for name, column in columns.items() if any(column)}
    json: dict[str, Any] = {
        "steps": [step_of(part[-1]) for part in parts],
        "values": {name: [_rounded(values, statistics.fmean) for values in column] for name, column in columns.items()},
    }
    if len(parts) < len(rows):
        json["low"] = {name: [_rounded(values, min) for values in column] for name, column in columns.items()}
        json["high"] = {name: [_rounded(values, max) for values in column] for name, column in columns.items()}
    return json


def _contributions(run: RunFolder, row: Row) -> dict[str, float]:
    """Weight x mean x coverage of each reward of a row."""
    if run.plan is None:
        return {}
    weights = {reward.name: reward.weight for reward in run.plan.rewards}
    found = {}
    for key, name in weighted(run).items():
        mean, coverage = _finite(row.get(f"rewards/{name}/mean")), _finite(row.get(f"rewards/{name}/coverage"))
        if mean is not None:
            found[key] = weights[name] * mean * (1.0 if coverage is None else coverage)
    return found


def _quantiles(parts: Sequence[Sequence[Row]], by_step: dict[int, StepSummary]) -> dict[str, list[Any]]:
    """Name -> for each part the mean of its steps' quantiles, or None."""
    steps = [[by_step[step_of(row)] for row in part if step_of(row) in by_step] for part in parts]
    names = dict.fromkeys(name for part in steps for summary in part for name in summary.quantiles)
    found: dict[str, list[Any]] = {}
    for name in names:
        known = [[summary.quantiles[name] for summary in part if name in summary.quantiles] for part in steps]
        found[name] = [
            [_rounded(column, statistics.fmean) for column in zip(*rows, strict=True)] or None for rows in known
        ]
    return found


def _known(part: Sequence[Row], name: str) -> list[float]:
    values = (_finite(row.get(name)) for row in part)
    return [value for value in values if value is not None]


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _rounded(values: Sequence[float], take: Any) -> float | None:
    if not values:
        return None
    value = float(f"{take(values):.{_DIGITS}g}")
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
