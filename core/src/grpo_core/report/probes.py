"""Probe answers of a run: all scores, and the texts as far as they fit, evenly spread over the steps."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.report.answers import Answer, read_answers
from grpo_core.report.run import RunFolder
from grpo_core.report.thinning import evenly_spread

__all__ = ["ProbeAnswers", "read_probes", "steps_with_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswers:
    """What the fixed prompts were answered."""

    answers: tuple[Answer, ...]
    """By step."""
    with_text: frozenset[int]
    """Steps whose texts go into the page."""
    text: str
    """A sentence about what is left out; empty: nothing."""


def read_probes(run: RunFolder, *, budget_bytes: int) -> ProbeAnswers:
    """Read all probe answers; texts of at most about `budget_bytes`, those of the first and last step among them."""
    by_step = [list(read_answers(file, run.notes)) for file in run.probes]
    kept = [answers for answers in by_step if answers]
    sizes = {answers[0].step: sum(answer.size() for answer in answers) for answers in kept}
    chosen = steps_with_text(sizes, budget_bytes=budget_bytes)
    left_out = len(sizes) - len(chosen)
    text = (
        f"The texts of {left_out} of {len(sizes)} probes are left out to keep this file small; their scores are here, "
        "and the texts are in the run's probes folder."
    )
    return ProbeAnswers(
        answers=tuple(answer for answers in kept for answer in answers),
        with_text=frozenset(chosen),
        text=text if left_out else "",
    )


def steps_with_text(sizes: dict[int, int], *, budget_bytes: int) -> list[int]:
    """Steps, evenly spread with first and last, whose sizes sum to about the budget."""
    steps, total = sorted(sizes), sum(sizes.values())
    if total <= budget_bytes:
        return steps
    return evenly_spread(steps, max(budget_bytes * len(steps) // total, 2))
