"""How `grpoctl rewards audit` looks, and the plain values of its `--json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.text import Text

from grpo_core.cli.console import stdout
from grpo_core.cli.rewards_views import cut_lines, failure_of, plain_outcome, shown_outcome
from grpo_core.cli.tables import Cell, print_table

if TYPE_CHECKING:
    from grpo_core.trial.audit import Audit
    from grpo_core.trial.findings import Finding
    from grpo_core.trial.reference import Reference

__all__ = ["facts_of_audit", "show_audit"]

_SHOULD = {"pays": "be paid", "refuses": "not be paid", "shown": ""}
_EXAMPLE_CHARACTERS = 400


def facts_of_audit(found: Audit) -> dict[str, Any]:
    """`rewards audit --json`."""
    reference = found.reference
    return {
        "rows": found.rows,
        "rows_of_other_tasks": found.unclaimed,
        "reference": None if reference is None else _reference_facts(reference),
        "no_reference_because": found.skipped,
        "controls": [_facts(each) for each in found.controls],
        "ways_of_scoring": [_facts(each) for each in found.ways],
        "problems": len(found.problems),
    }


def _reference_facts(reference: Reference) -> dict[str, Any]:
    facts: dict[str, Any] = {"column": reference.column, "form": reference.form}
    return facts | ({"after_the_prompt": True} if reference.continues else {})


def _facts(finding: Finding) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": finding.name,
        "judged": finding.judged,
        "mean": finding.mean,
        "count": finding.count,
        "none": finding.none,
        "failed": finding.failed,
        "problem": finding.problem,
    }
    example = finding.example
    if example is not None:
        facts["example"] = {
            "sample_id": example.sample_id,
            "completion": cut_lines(example.completion, _EXAMPLE_CHARACTERS),
            "score": plain_outcome(example.outcome),
            "failure": failure_of(example.outcome),
            "note": example.note,
        }
    return facts


def show_audit(name: str, found: Audit, *, total: int) -> None:
    """`rewards audit`: what it pays for, whether its scores depend on the way, and each problem with an example."""
    others = f", {found.unclaimed} of other tasks left out" if found.unclaimed else ""
    stdout.print(Text.assemble((name, "bold"), f": {found.rows} of {total} rows{others}"))
    if found.reference is not None:
        stdout.print(Text(f"the right answer: {found.reference}"))
    if found.skipped is not None:
        stdout.print(Text(f"no controls about the right answer: {found.skipped}", style="yellow"))
    stdout.print()
    print_table(
        ("what it is given", "should", "mean score", "scored", "None", "failed", "verdict"),
        [_control_row(each) for each in found.controls],
    )
    stdout.print()
    print_table(("its scores", "completions", "verdict"), [_way_row(each) for each in found.ways])
    stdout.print()
    for finding in found.problems:
        for line in _explained(finding):
            stdout.print(line)
    count = len(found.problems)
    words = (
        f"{count} {'control fails' if count == 1 else 'controls fail'}" if count else "every control is as it should"
    )
    stdout.print(Text(words, style="bold red" if count else "green"))


def _control_row(finding: Finding) -> tuple[Cell, ...]:
    mean = "-" if finding.mean is None else f"{finding.mean:.3f}"
    scored = finding.count - finding.none - finding.failed
    counts = (str(scored), str(finding.none), str(finding.failed))
    return finding.name, _SHOULD[finding.judged], mean, *counts, _verdict(finding)


def _way_row(finding: Finding) -> tuple[Cell, ...]:
    return finding.name, str(finding.count), _verdict(finding)


def _verdict(finding: Finding) -> Cell:
    if finding.problem is not None:
        return Text("FAILS", style="bold red")
    if not finding.count:
        return Text("not made", style="yellow")
    return Text("" if finding.judged == "shown" else "ok", style="green")


def _explained(finding: Finding) -> Iterator[Text]:
    yield Text.assemble((f"{finding.name}: ", "bold red"), finding.problem or "")
    example = finding.example
    if example is not None:
        text = cut_lines(example.completion, _EXAMPLE_CHARACTERS)
        result = f"scores {shown_outcome(example.outcome)}{f', {example.note}' if example.note else ''}"
        if "\n" not in text:
            yield Text(f"  {example.sample_id} {json.dumps(text, ensure_ascii=False)} {result}")
            return
        yield Text(f"  {example.sample_id} {result}:")
        yield from (Text(f"    | {_escaped(line)}".rstrip()) for line in text.split("\n"))


def _escaped(line: str) -> str:
    """A line without the signs that a terminal obeys."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in line)
