"""When a run writes checkpoints and which of them it keeps, as its settings say.

Place in the flow: settings → **saving** → the plan that is printed, and the loop that writes.
"""

from __future__ import annotations

from grpo_core.recipe.schema import RunSettings

__all__ = ["kept_count", "kept_whatever", "saving_words"]

_NEWEST = 2
"""Of checkpoints by the clock, where nobody says how many: one to go on from, and one in case that is damaged."""


def kept_count(run: RunSettings) -> int | None:
    """How many of the newest checkpoints are kept, among those that may go; None: all."""
    if run.save_total_limit is not None or run.save_minutes is None:
        return run.save_total_limit
    return _NEWEST


def kept_whatever(step: int, run: RunSettings) -> bool:
    """Whether the checkpoint of a step is kept however many there are: its step was asked for, and no limit was."""
    return run.save_total_limit is None and run.save_steps is not None and step % run.save_steps == 0


def saving_words(run: RunSettings) -> str:
    """The same for people, in one line."""
    steps = None if run.save_steps is None else _every(run.save_steps, "step")
    minutes = None if run.save_minutes is None else _every(run.save_minutes, "minute")
    regular = " and ".join(filter(None, [steps, minutes]))
    when = ", ".join(filter(None, [regular, "at the end", "and at the last whole step when the run fails"]))
    return f"{when}; {_kept_words(run, steps)} kept"


def _kept_words(run: RunSettings, steps: str | None) -> str:
    count = kept_count(run)
    if count is None:
        return "all are"
    newest = "the newest" if count == 1 else f"the newest {count}"
    if run.save_total_limit is not None or steps is None:
        return f"{newest} and the last good one are"
    return f"those of {steps}, {newest} of the others and the last good one are"


def _every(number: float, unit: str) -> str:
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"every {unit}" if number == 1 else f"every {shown} {unit}s"
