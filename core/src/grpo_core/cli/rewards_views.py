"""How `grpoctl rewards list | try | test` look, and the plain values of their `--json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rich.text import Text

from grpo_core.cli.console import stdout
from grpo_core.cli.tables import Cell, print_table
from grpo_core.plugins.catalog import Entry, missing_requirements
from grpo_core.plugins.specs import RewardSpec

if TYPE_CHECKING:
    from grpo_core.trial.attempt import Argument, Attempt
    from grpo_core.trial.cases import Expected
    from grpo_core.trial.testing import Verdict
    from grpo_core.types import Outcome

__all__ = [
    "any_failed",
    "cut",
    "cut_lines",
    "facts_of",
    "facts_of_attempt",
    "facts_of_verdicts",
    "show_attempt",
    "show_list",
    "show_verdicts",
    "shown_outcome",
]

_SHOWN_CHARACTERS = 120
_RED, _GREEN = "bold red", "green"


def facts_of(entry: Entry, *, columns: bool) -> dict[str, Any]:
    """A registered reward in `rewards list --json`; `columns` has it imported, to say which it takes."""
    from grpo_core.trial.cases import shipped_cases

    spec = cast(RewardSpec, entry.spec)
    cases = shipped_cases(spec.target, spec.name)
    facts: dict[str, Any] = {
        "name": spec.name,
        "qualified_name": entry.qualified_name,
        "distribution": entry.distribution,
        "version": entry.version,
        "summary": spec.summary,
        "aliases": list(spec.aliases),
        "scope": spec.scope,
        "runs_in": spec.runs_in,
        "budget_s": spec.budget_s,
        "tasks": list(spec.tasks),
        "pure": spec.pure,
        "verifies": spec.verifies,
        "missing_requirements": missing_requirements(spec),
        "cases": None if cases is None else str(cases),
    }
    return facts | {"columns": _columns_of(entry)} if columns else facts


def _columns_of(entry: Entry) -> dict[str, Any]:
    import dataclasses

    from grpo_core.trial.needs import needs_of

    return dataclasses.asdict(needs_of(entry))


def show_list(facts: Sequence[Mapping[str, Any]]) -> None:
    """`rewards list`."""
    headers = ["name", "plugin", "sees", "runs in", "tasks", *(["columns"] if "columns" in facts[0] else []), "summary"]
    rows = []
    for each in facts:
        limit = "" if each["budget_s"] is None else f", {each['budget_s']:g} s"
        names = [each["name"], *(f"({alias})" for alias in each["aliases"])]
        cells = ["\n".join(names), each["distribution"], f"one {each['scope']}", f"{each['runs_in']}{limit}"]
        cells.append(", ".join(each["tasks"]) or "all")
        if "columns" in each:
            cells.append("\n".join(_shown_needs(each["columns"])))
        missing = [f"needs {requirement}, which is not installed" for requirement in each["missing_requirements"]]
        rows.append((*cells, "\n".join([each["summary"], *missing])))
    print_table(headers, rows)


def _shown_needs(needs: Mapping[str, Any]) -> list[str]:
    if needs["unknown"] is not None:
        return [f"unknown: {needs['unknown'].splitlines()[0]}"]
    named = [*needs["required"], *(f"[{name}]" for name in needs["optional"]), *(["…"] if needs["takes_rest"] else [])]
    return named or ["none"]


def facts_of_attempt(tried: Attempt) -> dict[str, Any]:
    """`rewards try --json`."""
    return {
        "reward": tried.planned.name,
        "component": tried.planned.component.name,
        "scores": [plain_outcome(outcome) for outcome in tried.outcomes],
        "failures": _plain([failure_of(outcome) for outcome in tried.outcomes]),
        "claimed": tried.claimed,
        "arguments": {each.parameter: {"column": each.column, "value": _plain(each.value)} for each in tried.arguments},
        "columns_not_read": list(tried.unread),
        "records": {name: [_plain(value) for value in values] for name, values in tried.records.items()},
        "where": tried.place,
        "start_s": tried.start_s,
        "score_s": tried.score_s,
    }


def show_attempt(tried: Attempt) -> None:
    """`rewards try`."""
    component = tried.planned.component
    version = f" ({component.distribution} {component.version})" if component.distribution else f" ({component.name})"
    stdout.print(Text.assemble((tried.planned.name, "bold"), version))
    several = len(tried.outcomes) > 1
    for number, outcome in enumerate(tried.outcomes, start=1):
        _line(f"score {number}" if several else "score", shown_outcome(outcome))
    if not tried.claimed:
        _line("", f"it is meant for {', '.join(tried.planned.tasks)}, and the row's task is another")
    for each in tried.arguments:
        _line("called with" if each is tried.arguments[0] else "", _shown_argument(each))
    if tried.unread:
        _line("not read", ", ".join(tried.unread))
    for name, values in tried.records.items():
        _line("recorded", f"{name} = {cut(_as_json(list(values)))}")
    _line("ran", tried.place)
    _line("time", f"{_seconds(tried.score_s)}, after {_seconds(tried.start_s)} to start")
    if any(each.parameter == "completion_ids" for each in tried.arguments):
        _line("note", "token ids are stand-ins, one a word or sign: no tokenizer is loaded")


def facts_of_verdicts(file: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """`rewards test --json`."""
    failed = [verdict for verdict in verdicts if not verdict.passed]
    return {
        "cases": file,
        "passed": len(verdicts) - len(failed),
        "failed": len(failed),
        "failures": [_facts_of_verdict(each) for each in failed],
    }


def _facts_of_verdict(verdict: Verdict) -> dict[str, Any]:
    facts: dict[str, Any] = _plain(
        {
            "place": verdict.case.place,
            "name": verdict.case.name,
            "completion": verdict.case.texts[verdict.position],
            "expected": verdict.expected,
            "score": plain_outcome(verdict.outcome),
            "failure": failure_of(verdict.outcome),
            "why": verdict.case.why,
        }
    )
    return facts


def show_verdicts(file: str, verdicts: Sequence[Verdict]) -> None:
    """`rewards test`: the failures, then the count."""
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:
        print_table(("case", "expected", "score", "completion", "why"), [_verdict_row(each) for each in failed])
    counts = f"{len(verdicts) - len(failed)} of {len(verdicts)} as expected"
    stdout.print(Text.assemble((counts, _RED if failed else _GREEN), f"  {file}"))


def _verdict_row(verdict: Verdict) -> tuple[Cell, ...]:
    case = verdict.case
    member = f" [{verdict.position}]" if len(case.texts) > 1 else ""
    return (
        f"{cut(case.name or case.place)}{member}",
        _shown_expected(verdict.expected),
        cut(shown_outcome(verdict.outcome), 60),
        cut(_as_json(case.texts[verdict.position]), 60),
        cut(case.why),
    )


def _shown_expected(expected: Expected) -> str:
    if expected is None:
        return "does not apply"
    return expected if isinstance(expected, str) else f"{expected:g}"


def any_failed(outcomes: Sequence[Outcome]) -> bool:
    """Whether a score could not be computed."""
    return any(failure_of(outcome) is not None for outcome in outcomes)


def shown_outcome(outcome: Outcome) -> str:
    """A score for people."""
    reason = failure_of(outcome)
    if reason is not None:
        return f"failed: {_printable(reason)}"
    return "does not apply (None)" if outcome is None else f"{cast(float, outcome):.6g}"


def plain_outcome(outcome: Outcome) -> float | None:
    """A score in JSON: null where there is none."""
    return outcome if isinstance(outcome, float) else None


def failure_of(outcome: Outcome) -> str | None:
    """Why a score could not be computed."""
    return outcome.reason if outcome is not None and not isinstance(outcome, float) else None


def cut(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """A text on one line, its end left out where it is long."""
    line = " ".join(_printable(text).split())
    return line if len(line) <= limit else f"{line[:limit]}… ({len(text)} characters)"


def cut_lines(text: str, limit: int) -> str:
    """A text with its lines and their indentation, as programs need them; its end left out where it is long."""
    whole = _printable(text).replace("\r\n", "\n").strip("\n")
    return whole if len(whole) <= limit else f"{whole[:limit]}… ({len(text)} characters)"


def _shown_argument(argument: Argument) -> str:
    origin = "of the run" if argument.column is None else f"column {argument.column}"
    return f"{argument.parameter} = {cut(_as_json(argument.value))}  ({origin})"


def _line(label: str, value: str) -> None:
    stdout.print(Text.assemble("  ", (label.ljust(12), "cyan"), value))


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _as_json(value: object) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: object) -> Any:
    """The value in what JSON knows; texts can be printed, half characters left out."""
    return json.loads(_printable(json.dumps(value, default=repr, ensure_ascii=False)))


def _printable(text: str) -> str:
    """The text without half characters (lone surrogates), which no terminal and no file takes."""
    return text.encode("utf-8", "replace").decode()
