"""From run folders to the file: reads, lets every part be made, and writes it aside before it takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grpo_core.errors import UsageError
from grpo_core.regular_files import path_fault, read_bytes, shown
from grpo_core.report import sections
from grpo_core.report.answers import Answer, Samples, clipped
from grpo_core.report.charts import charts_json, lay_out
from grpo_core.report.completions import keep_completions, summarise
from grpo_core.report.curves import curve, metric_names, page_curves, weighted
from grpo_core.report.findings.read import findings_of
from grpo_core.report.images import read_pictures
from grpo_core.report.page import render
from grpo_core.report.probes import read_probes
from grpo_core.report.run import RunFolder, open_runs
from grpo_core.report.sections import RunParts

__all__ = ["BUDGET_BYTES", "IMAGE_BUDGET_BYTES", "make_page", "write_report"]

BUDGET_BYTES = 2_500_000
"""Of texts of completions in the page, and again of probe answers; all runs together."""
IMAGE_BUDGET_BYTES = 4_000_000
"""Of thumbnails in the page, as base64; all runs together."""
_MOST_NOTES = 20
_MOST_BYTES = 2**30
"""Of a file that is looked at for whether it is a report."""
_MARK = b"GRPO run report"
"""What every report has in its page.html."""


def write_report(paths: Sequence[Path], output: Path) -> tuple[RunFolder, ...]:
    """Write the report about the runs in `paths` to the file `output`; gives the runs with what was noted about them.

    A report that is there is replaced, any other file is not. Raises `UsageError` where a path is no run with metrics,
    or the file cannot be written.
    """
    if fault := path_fault(str(output)):
        raise UsageError(f"--output {shown(str(output))} can be no file: {fault}")
    if output.is_dir():
        raise UsageError(f"{output} is a folder", hint=f"Name a file: --output {output / 'report.html'}")
    if output.exists() and not _is_report(output):
        raise UsageError(
            f"{output} is there and is no report, so it is not overwritten", hint="Name another file with --output."
        )
    runs = open_runs(paths)
    text = make_page(runs, budget_bytes=BUDGET_BYTES)
    aside = output.with_name(f".{output.name}.partial")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(output)
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error.strerror or error}", hint="Name another file with --output."
        ) from error
    return runs


def _is_report(path: Path) -> bool:
    try:
        return _MARK in read_bytes(path, most=_MOST_BYTES)
    except OSError:
        return False


def make_page(runs: Sequence[RunFolder], *, budget_bytes: int, image_budget_bytes: int = IMAGE_BUDGET_BYTES) -> str:
    """The page about some runs."""
    images: dict[str, str] = {}
    share, image_share = budget_bytes // len(runs), image_budget_bytes // len(runs)
    made = [_read(run, images, budget_bytes=share, image_budget_bytes=image_share) for run in runs]
    parts, data = [part for part, _ in made], [json for _, json in made]
    metrics = list(dict.fromkeys(name for run in runs for name in (*metric_names(run), *weighted(run))))
    values = {name: [value for run in runs for value in curve(run, name).values] for name in metrics}
    plot = lay_out(metrics, [name for name, found in values.items() if len(found) > 1 and len(set(found)) == 1])
    slots = {
        "head": sections.head(parts),
        "findings": sections.findings(parts),
        "evaluation": sections.evaluation(parts),
        "numbers": sections.numbers(parts),
        "settings": sections.settings(parts),
        "notes": sections.notes(parts),
    }
    constant = {group: {name: values[name][0] for name in names} for group, names in plot.constant.items()}
    page = {"runs": data, "images": images, "charts": charts_json(plot), "constant": constant}
    return render(title=_title(runs), parts=slots, data=page)


def _read(
    run: RunFolder, images: dict[str, str], *, budget_bytes: int, image_budget_bytes: int
) -> tuple[RunParts, dict[str, Any]]:
    """Everything about one run: for the plain sections, and as data for the script. Adds its images to `images`."""
    summaries = summarise(run)
    kept = keep_completions(run, summaries, budget_bytes=budget_bytes)
    probes = read_probes(run, budget_bytes=budget_bytes)
    pictures = read_pictures(
        run.path / "images",
        (name for answer in probes.answers for name in answer.images),
        (name for answer in kept.answers for name in answer.images),
        budget_bytes=image_budget_bytes,
    )
    images |= pictures.texts
    curves = page_curves(run, summaries)
    samples = Samples()
    json = {
        "name": run.name,
        **curves.json,
        "rewards": _reward_names([*kept.answers, *probes.answers]),
        "completions": [_json(answer, samples.place(answer)) for answer in kept.answers],
        "probes": [
            _json(answer, samples.place(answer), with_text=answer.step in probes.with_text) for answer in probes.answers
        ],
        "samples": samples.rows,
        "said": {
            "curves": curves.text,
            "completions": kept.text if summaries else "",
            "probes": probes.text,
            "images": pictures.text,
        },
    }
    left_out = (curves.text, kept.text if len(kept.answers) < kept.total else "", probes.text, pictures.text)
    notes = [*_first(run.notes), *filter(None, left_out)]
    part = RunParts(run=run, summaries=summaries, findings=findings_of(run, summaries), notes=tuple(notes))
    return part, json


def _json(answer: Answer, sample: int, *, with_text: bool = True) -> dict[str, Any]:
    row: dict[str, Any] = {
        "step": answer.step,
        "sample": sample,
        "member": answer.member,
        "text": clipped(answer.text) if with_text else None,
        "tokens": answer.tokens,
        "total": answer.total,
        "scores": answer.scores,
    }
    rest = {
        "cut": answer.truncated,
        "advantage": answer.advantage,
        "drawn": answer.drawn,
        "failures": answer.failures,
        "records": answer.records,
    }
    return row | {name: value for name, value in rest.items() if value not in (None, "", {}, False)}


def _reward_names(answers: Sequence[Answer]) -> list[str]:
    return list(dict.fromkeys(name for answer in answers for name in answer.scores))


def _first(notes: Sequence[str]) -> list[str]:
    if len(notes) <= _MOST_NOTES:
        return list(notes)
    return [*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES} more of this kind"]


def _title(runs: Sequence[RunFolder]) -> str:
    names = [run.name for run in runs]
    return names[0] if len(names) == 1 else f"{len(names)} runs: {', '.join(names)}"
