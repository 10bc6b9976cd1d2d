"""The same completions scored in other ways: again, in another order, off the main thread, one at a time.

A score may depend on the completion and its row, and on nothing else: not on what was scored before it or beside it,
and not on the thread (an alarm works in the main one alone). A reward that compares completions is not asked one at a
time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from grpo_core.reward.scoring import Scorer
from grpo_core.trial.findings import Example, Finding
from grpo_core.trial.grid import Scores, Written, score_grid
from grpo_core.types import Failed, Outcome, Sample

__all__ = ["other_ways"]


def other_ways(scorer: Scorer, samples: Sequence[Sample], written: Written, before: Scores) -> Iterator[Finding]:
    """Score the completions, whose scores were `before`, in other ways, and say where a score differs."""

    def again() -> Scores:
        return score_grid(scorer, samples, written)

    def backwards() -> Scores:
        turned = score_grid(scorer, samples[::-1], [row[::-1] for row in written[::-1]])
        return [row[::-1] for row in turned[::-1]]

    def alone() -> Scores:
        places = [(row, place) for row in range(len(samples)) for place in range(len(written[row]))]
        single = score_grid(
            scorer, [samples[row] for row, _ in places], [[written[row][place]] for row, place in places]
        )
        found = iter(single)
        return [[next(found)[0] for _ in row] for row in written]

    def elsewhere() -> Scores:
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(again).result()

    ways = {"scored again": again, "in another order": backwards, "off the main thread": elsewhere}
    if scorer.rewards[0].planned.scope == "sample":
        ways["one at a time"] = alone
    for name, way in ways.items():
        yield _compared(name, samples, written, before, way())


def _compared(name: str, samples: Sequence[Sample], written: Written, before: Scores, after: Scores) -> Finding:
    finding = Finding(name=name, judged="pays", count=sum(text is not None for row in written for text in row))
    for sample, texts, old, new in zip(samples, written, before, after, strict=True):
        for text, one, other in zip(texts, old, new, strict=True):
            if text is not None and not _same(one, other):
                example = Example(sample_id=sample.id, completion=text, outcome=one, note=f"then {_shown(other)}")
                return replace(finding, problem="the same completion scores differently", example=example)
    return finding


def _same(one: Outcome, other: Outcome) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return type(one) is type(other)


def _shown(outcome: Outcome) -> str:
    if isinstance(outcome, Failed):
        return f"failed: {outcome.reason}"
    return "does not apply" if outcome is None else f"{outcome:.6g}"
