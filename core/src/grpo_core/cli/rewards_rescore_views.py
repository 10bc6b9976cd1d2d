"""How `grpoctl rewards rescore` looks, the plain values of its `--json`, and the file it writes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_core.cli.tables import print_table
from grpo_core.errors import UsageError
from grpo_core.loop.lines import encode

if TYPE_CHECKING:
    from grpo_core.trial.rescore import Rescored, Score

__all__ = ["facts_of_step", "show_rescored", "warnings_of", "writing"]

Write = Callable[[Iterable[Mapping[str, Any]]], None]
"""Adds rows to the output."""


@contextmanager
def writing(output: Path | None) -> Iterator[Write]:
    """What writes rows into a new file, which is removed when scoring fails half way; without a file, nothing.

    Raises `UsageError` for a file that is there, or cannot be made.
    """
    if output is None:
        yield lambda rows: None
        return
    try:
        file = output.open("xb")
    except FileExistsError:
        raise UsageError(f"--output {output}: is there already", hint="Nothing is overwritten.") from None
    except OSError as error:
        raise UsageError(f"--output {output}: cannot be made: {error.strerror}") from error
    try:
        with file:
            yield lambda rows: file.writelines(map(_line, rows))
    except BaseException:
        output.unlink()
        raise


def facts_of_step(step: Rescored) -> dict[str, Any]:
    """A step in `rewards rescore --json`."""
    return {
        "step": step.step,
        "total": _facts(step.total),
        "rewards": {name: {**_facts(score), "failed": score.failed} for name, score in step.rewards.items()},
        "totals_changed": step.changed,
    }


def show_rescored(steps: Sequence[Rescored]) -> None:
    """`rewards rescore`: means before and after, by step and over all of them."""
    names = list(steps[0].rewards)
    rows = [
        (str(each.step), _shown(each.total), str(each.changed), *(_shown(each.rewards[name]) for name in names))
        for each in steps
    ]
    over_all = [_over([each.total for each in steps]), *(_over([each.rewards[n] for each in steps]) for n in names)]
    total, *others = over_all
    last = ("all", total, str(sum(each.changed for each in steps)), *others)
    print_table(("step", "total", "totals changed", *names), [*rows, *([last] if len(rows) > 1 else [])])


def warnings_of(steps: Sequence[Rescored]) -> Iterator[str]:
    """What a person must know of the numbers."""
    failed = sum(score.failed for each in steps for score in each.rewards.values())
    if failed:
        first = next(each.failure for each in steps if each.failure is not None)
        yield f"{failed} scores failed; these completions have no total; first: {first}"
    differing = sum(each.differing for each in steps)
    if differing:
        yield (
            f"token ids are made of the text, and {differing} completions had another number of tokens when they were "
            "drawn: rewards that read token ids may be a little off"
        )


def _facts(score: Score) -> dict[str, float | None]:
    return {"before": score.before, "after": score.after}


def _shown(score: Score) -> str:
    return _arrow(score.before, score.after)


def _arrow(before: float | None, after: float | None) -> str:
    """Of a reward that the run did not have, the new mean alone."""
    now = "-" if after is None else f"{after:.4f}"
    return now if before is None else f"{before:.4f} → {now}"


def _over(scores: Sequence[Score]) -> str:
    """The mean over steps."""
    return _arrow(_mean(score.before for score in scores), _mean(score.after for score in scores))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _line(row: Mapping[str, Any]) -> bytes:
    return encode(json.dumps(row, ensure_ascii=False, default=str) + "\n")
