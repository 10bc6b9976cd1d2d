"""The charts: every metric has its place."""

from __future__ import annotations

import re
from pathlib import Path

from grpo_core.report.charts import Plot, charts_json, lay_out

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def metrics_of(plot: Plot, title: str) -> list[str]:
    (found,) = (chart for chart in plot.charts if chart.title == title)
    return [line.metric for line in found.lines]


def test_every_documented_metric_is_in_a_chart_of_its_own_group() -> None:
    names = re.findall(r"`([\w@<>]+/[\w@<>/]+|epoch)`", PAGE.read_text(encoding="utf-8"))
    named = [re.sub(r"<\w+>", "1", name) for name in names]
    plot = lay_out(named, ())
    drawn = {name for chart in plot.charts for line in chart.lines for name in (line.metric, line.spread)}
    assert set(named) <= drawn
    assert not [chart.title for chart in plot.charts if chart.group == "Other"]


def test_each_reward_has_a_chart_with_its_deviation() -> None:
    plot = lay_out(["rewards/a/mean", "rewards/a/std", "rewards/b-c/mean"], ())
    assert [(chart.title, chart.lines[0].spread) for chart in plot.charts] == [
        ("a", "rewards/a/std"),
        ("b-c", "rewards/b-c/std"),
    ]


def test_names_make_the_lines_of_one_chart() -> None:
    plot = lay_out(["eval/accuracy", "eval/tasks/math/accuracy", "eval/tasks/code/accuracy"], ())
    assert metrics_of(plot, "Accuracy") == ["eval/accuracy", "eval/tasks/math/accuracy", "eval/tasks/code/accuracy"]
    assert [line.label for line in plot.charts[0].lines] == ["all", "math", "code"]


def test_a_metric_that_core_does_not_know_is_drawn_under_other() -> None:
    plot = lay_out(["acme/own", "policy/kl"], ())
    assert [(chart.group, chart.title) for chart in plot.charts] == [("Policy", "KL"), ("Other", "acme/own")]


def test_what_never_changes_is_named_instead_of_drawn_but_for_rewards() -> None:
    metrics = ["reward/mean", "rewards/a/failed", "rewards/b/failed", "reward/no_total", "policy/ratio_mean"]
    plot = lay_out(metrics, [name for name in metrics if name != "rewards/b/failed"])
    assert [chart.title for chart in plot.charts] == ["Total reward", "Failed scores"]
    assert plot.constant == {"Rewards": ("reward/no_total",), "Policy": ("policy/ratio_mean",)}


def test_every_chart_has_an_id_of_its_own() -> None:
    made = charts_json(lay_out(["policy/kl", "policy/entropy"], ()))
    assert [chart["id"] for chart in made] == ["chart-0", "chart-1"]
    assert list(made[0]["lines"]) == [{"metric": "policy/kl", "label": "KL", "spread": None}]
