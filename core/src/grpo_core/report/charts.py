"""The charts of a report: the list of charts, filled with the metrics that the runs have.

Every metric has its place: what is listed nowhere is drawn under "Other", and what never changes is named where a
picture would be idle.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from grpo_core.report.chart_list import CHARTS, Chart, Line

__all__ = ["Plot", "charts_json", "lay_out"]

_OTHER = "Other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """All charts of a report."""

    charts: tuple[Chart, ...]
    constant: dict[str, tuple[str, ...]]
    """Group -> metrics that have one value throughout and are not drawn."""


def lay_out(metrics: Sequence[str], constant: Collection[str]) -> Plot:
    """The charts that have something to show.

    `metrics` are all names of all runs, in order; `constant` those that have one value only, in all runs together.
    """
    charts: list[Chart] = []
    undrawn: dict[str, tuple[str, ...]] = {}
    placed: set[str] = set()
    for template in CHARTS:
        for chart in _filled(template, metrics):
            names = {name for line in chart.lines for name in (line.metric, line.spread) if name}
            placed |= names
            if names <= set(constant) and not chart.always:
                undrawn[chart.group] = (*undrawn.get(chart.group, ()), *(line.metric for line in chart.lines))
            else:
                charts.append(chart)
    for name in metrics:
        if name not in placed:
            charts.append(Chart(group=_OTHER, title=name, note="", lines=(Line(metric=name, label="value"),)))
    return Plot(charts=tuple(charts), constant=undrawn)


def charts_json(plot: Plot) -> list[dict[str, Any]]:
    """The charts as the page gets them."""
    return [{"id": f"chart-{place}", **asdict(chart)} for place, chart in enumerate(plot.charts)]


def _filled(template: Chart, metrics: Sequence[str]) -> Iterator[Chart]:
    """The template with the lines there are: one chart a `<name>`, or one line a `<*>`."""
    if template.title == "<name>":
        for name in _matches(template.lines[0].metric, metrics):
            yield from _filled(_named(template, name), metrics)
        return
    lines = tuple(line for each in template.lines for line in _lines(each, metrics))
    if lines:
        yield replace(template, lines=lines)


def _lines(line: Line, metrics: Sequence[str]) -> Iterator[Line]:
    if "<*>" not in line.metric:
        if line.metric in metrics:
            yield line
        return
    for name in _matches(line.metric, metrics):
        yield Line(metric=line.metric.replace("<*>", name), label=line.label.replace("<*>", name))


def _matches(pattern: str, metrics: Sequence[str]) -> list[str]:
    """What stands for the `<…>` of a metric's name, in order of appearance."""
    before, after = re.split(r"<[^>]*>", pattern)
    found = re.compile(f"{re.escape(before)}(.+){re.escape(after)}")
    return [match[1] for name in metrics if (match := found.fullmatch(name))]


def _named(template: Chart, name: str) -> Chart:
    (line,) = template.lines
    metric, spread = (text.replace("<name>", name) for text in (line.metric, line.spread or ""))
    named = Line(metric=metric, label=line.label, spread=spread)
    return replace(template, title=name, lines=(named,))
