"""The parts of the page that are plain HTML and can be read without JavaScript: facts, findings, tables, notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grpo_core.recipe.complaints import show_value
from grpo_core.recipe.explain import DEFAULT, Explained, explain
from grpo_core.report.completions import StepSummary
from grpo_core.report.curves import curve, metric_names
from grpo_core.report.facts import Fact, facts, setup
from grpo_core.report.findings.finding import Finding
from grpo_core.report.markup import Html, join, tag
from grpo_core.report.run import RunFolder
from grpo_core.report.thinning import evenly_spread

__all__ = ["RunParts", "evaluation", "findings", "head", "notes", "numbers", "settings"]

_MOST_COLUMNS = 12
_LEVELS = {"good": "Good", "note": "Note", "warning": "Look", "bad": "Trouble"}
_MISSING = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What the sections need of a run."""

    run: RunFolder
    summaries: tuple[StepSummary, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    """What is left out of the page."""


def head(runs: Sequence[RunParts]) -> Html:
    """What was run, and the numbers one asks for first: tiles for one run; for several a table of what differs, with a
    column a run, and then what they share."""
    if len(runs) == 1:
        (only,) = runs
        tiles = (_tile(fact) for fact in facts(only.run, only.summaries))
        return join(_facts(setup(only.run)), tag("div", *tiles, class_="tiles"))
    columns = [[*setup(one.run), *facts(one.run, one.summaries)] for one in runs]
    shared = [fact for fact in columns[0] if all(fact in column for column in columns)]
    return join(_comparison(runs, [[fact for fact in each if fact not in shared] for each in columns]), _facts(shared))


def findings(runs: Sequence[RunParts]) -> Html:
    """Every finding as a card, by run."""
    return join(*(_findings_of(one, named=len(runs) > 1) for one in runs))


def evaluation(runs: Sequence[RunParts]) -> Html:
    """Every evaluation metric of every run at the steps it was evaluated; empty: nothing was."""
    return join(*(_metric_table(one.run, "eval/", named=len(runs) > 1, change=True) for one in runs))


def numbers(runs: Sequence[RunParts]) -> Html:
    """Every other metric at a few steps: the curves as a table."""
    return join(*(_metric_table(one.run, "", named=len(runs) > 1, change=False) for one in runs))


def settings(runs: Sequence[RunParts]) -> Html:
    """Every setting with its origin, the runs side by side; those that differ stand first."""
    known = [(one.run.name, _explained(one.run)) for one in runs]
    paths = dict.fromkeys(path for _, values in known for path in values)
    found = {path: [values.get(path) for _, values in known] for path in paths}
    rows = [_setting(path, found[path]) for path in sorted(found, key=lambda path: not _differ(found[path]))]
    if not rows:
        return Html("")
    names = [name for name, _ in known] if len(known) > 1 else ["value"]
    header = tag("tr", *(tag("th", label, scope="col") for label in ("setting", *names)))
    return _scrolling(tag("thead", header), tag("tbody", *rows), class_="settings", label="Settings")


def notes(runs: Sequence[RunParts]) -> Html:
    """What the page leaves out or could not read."""
    lines = [f"{one.run.name}: {note}" if len(runs) > 1 else note for one in runs for note in one.notes]
    return tag("ul", *(tag("li", line) for line in lines), class_="notes") if lines else tag("p", "Nothing.")


def _facts(shown: Sequence[Fact]) -> Html:
    return tag("dl", *(tag("div", tag("dt", fact.label), tag("dd", fact.value)) for fact in shown), class_="setup")


def _tile(fact: Fact) -> Html:
    return tag(
        "div",
        tag("span", fact.label, class_="label"),
        tag("strong", fact.value),
        tag("span", fact.detail, class_="detail"),
        class_="tile",
    )


def _comparison(runs: Sequence[RunParts], facts_by_run: Sequence[Sequence[Fact]]) -> Html:
    columns = [{fact.label: fact for fact in shown} for shown in facts_by_run]
    labels = list(dict.fromkeys(label for column in columns for label in column))
    header = tag("tr", *(tag("th", text, scope="col") for text in ("", *(one.run.name for one in runs))))
    rows = (
        tag("tr", tag("th", label, scope="row"), *(tag("td", *_compared(column.get(label))) for column in columns))
        for label in labels
    )
    return _scrolling(tag("thead", header), tag("tbody", *rows), class_="comparison", label="Runs compared")


def _compared(fact: Fact | None) -> Iterator[Html]:
    yield join(fact.value if fact else _MISSING)
    if fact and fact.detail:
        yield tag("span", fact.detail, class_="detail")


def _findings_of(one: RunParts, *, named: bool) -> Html:
    heading = tag("h3", one.run.name, class_="run-title") if named else Html("")
    cards = (_finding(finding) for finding in one.findings)
    return join(heading, tag("div", *cards, class_="findings") if one.findings else tag("p", "Nothing stands out."))


def _finding(finding: Finding) -> Html:
    return tag(
        "article",
        tag("p", tag("span", _LEVELS[finding.level], class_="level"), tag("strong", finding.title)),
        tag("p", finding.text),
        tag("p", finding.advice, class_="advice") if finding.advice else Html(""),
        class_=f"finding {finding.level}",
        data_rule=finding.rule,
        data_metrics=" ".join(finding.metrics),
    )


def _metric_table(run: RunFolder, prefix: str, *, named: bool, change: bool) -> Html:
    """Metrics that begin with `prefix` (without one: all but evaluation's) at a few of the steps they have."""
    names = [
        name for name in metric_names(run) if (name.startswith(prefix) if prefix else not name.startswith("eval/"))
    ]
    curves = {name: dict(zip(one.steps, one.values, strict=True)) for name in names if len(one := curve(run, name))}
    if not curves:
        return Html("")
    all_steps = sorted({step for points in curves.values() for step in points})
    steps = evenly_spread(all_steps, _MOST_COLUMNS)
    header = tag(
        "tr",
        *(
            tag("th", text, scope="col")
            for text in ("metric", *map(_step_label, steps), *(["change"] if change else []))
        ),
    )
    rows = [_metric_row(name, points, steps, change=change) for name, points in curves.items()]
    said = f"{len(steps)} of {len(all_steps)} steps, evenly spread." if len(steps) < len(all_steps) else ""
    label = f"Metrics of {run.name}"
    return join(
        tag("h3", run.name, class_="run-title") if named else Html(""),
        _scrolling(tag("thead", header), tag("tbody", *rows), class_="metrics", label=label),
        tag("p", said, class_="hint") if said else Html(""),
    )


def _metric_row(name: str, points: Mapping[int, float], steps: Sequence[int], *, change: bool) -> Html:
    cells = [tag("td", _cell(points.get(step))) for step in steps]
    if change:
        values = list(points.values())
        cells.append(tag("td", f"{values[-1] - values[0]:+.4g}" if len(values) > 1 else _MISSING, class_="change"))
    return tag("tr", tag("th", name, scope="row"), *cells)


def _cell(value: float | None) -> str:
    return _MISSING if value is None else f"{value:.4g}"


def _step_label(step: int) -> str:
    return "before" if step == 0 else f"step {step}"


def _explained(run: RunFolder) -> dict[str, Explained]:
    return {} if run.plan is None else {each.path: each for each in explain(run.plan)}


def _setting(path: str, values: Sequence[Explained | None]) -> Html:
    texts = _texts(values)
    classes = []
    if _differ(values):
        classes.append("differs")
    if all(value is None or value.origin == DEFAULT for value in values):
        classes.append("default")
    cells = (tag("td", *_setting_cell(text, value)) for text, value in zip(texts, values, strict=True))
    return tag("tr", tag("th", path, scope="row"), *cells, class_=" ".join(classes) or None)


def _texts(values: Sequence[Explained | None]) -> list[str | None]:
    return [None if value is None else show_value(value.value) for value in values]


def _differ(values: Sequence[Explained | None]) -> bool:
    return len(set(_texts(values))) > 1


def _setting_cell(text: str | None, value: Explained | None) -> Iterator[Html]:
    if text is None or value is None:
        yield join(_MISSING)
    else:
        yield tag("code", text)
        yield tag("span", value.origin, class_="origin")


def _scrolling(*children: Html, class_: str, label: str) -> Html:
    """A table that scrolls sideways by itself, also by the keyboard."""
    return tag(
        "div", tag("table", *children, class_=class_), class_="scrolling", tabindex="0", role="region", aria_label=label
    )
