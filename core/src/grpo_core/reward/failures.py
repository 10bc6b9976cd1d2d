"""What is done about failed scores and unscored completions: said once, and too many of them stop the run.

Place in the flow: outcomes → **failures** → totals.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from grpo_core.errors import RewardError
from grpo_core.types import Failed, Outcome

__all__ = ["FailureWatch", "Judged"]

_LOG = logging.getLogger("grpo_core")
_MAX_REASONS = 20


class Judged(Protocol):
    """What is looked at: a scored group, or what a rank is told about one of another rank."""

    @property
    def sample_id(self) -> str:
        """Of its sample."""
        ...

    @property
    def outcomes(self) -> Mapping[str, tuple[Outcome, ...]]:
        """Reward name -> [G] outcomes."""
        ...

    @property
    def totals(self) -> tuple[float | None, ...]:
        """[G] Totals."""
        ...


class FailureWatch:
    """Remembers over a run what was reported, so that each reason is reported once."""

    def __init__(self, *, max_failed_share: float) -> None:
        self._max_failed_share = max_failed_share
        self._reported: dict[str, set[str]] = {}
        self._unscored_reported = False

    def look(self, scored: Sequence[Judged], *, step: int) -> None:
        """Report what is new in a step; raises `RewardError` when a reward failed on more than the share allowed."""
        names = scored[0].outcomes if scored else ()
        for name in names:
            failures = [
                (group.sample_id, outcome.reason)
                for group in scored
                for outcome in group.outcomes[name]
                if isinstance(outcome, Failed)
            ]
            if failures:
                self._report(name, failures)
                applied = sum(outcome is not None for group in scored for outcome in group.outcomes[name])
                self._stop_if_too_many(name, failures, applied, step)
        self._report_unscored(scored)

    def _report(self, name: str, failures: Sequence[tuple[str, str]]) -> None:
        seen = self._reported.setdefault(name, set())
        for sample_id, reason in failures:
            if reason in seen or len(seen) >= _MAX_REASONS:
                continue
            seen.add(reason)
            last = " (further reasons of this reward are only counted)" if len(seen) == _MAX_REASONS else ""
            _LOG.warning("reward '%s' failed on sample %s: %s%s", name, sample_id, reason, last)

    def _stop_if_too_many(self, name: str, failures: Sequence[tuple[str, str]], applied: int, step: int) -> None:
        share = len(failures) / applied
        if share <= self._max_failed_share:
            return
        sample_id, reason = failures[0]
        raise RewardError(
            f"reward '{name}' failed on {len(failures)} of {applied} completions ({share:.0%}) in step {step}, more "
            f"than scoring.max_failed_share={self._max_failed_share:g} allows; first on sample {sample_id}: {reason}",
            hint="Mend the reward, have it return None for samples it cannot judge, or allow more failures with "
            "--set scoring.max_failed_share=0.5 (failed completions are left out of the update).",
        )

    def _report_unscored(self, scored: Sequence[Judged]) -> None:
        unscored = [
            group.sample_id
            for group in scored
            for member in range(len(group.totals))
            if all(outcomes[member] is None for outcomes in group.outcomes.values())
        ]
        if unscored and not self._unscored_reported:
            self._unscored_reported = True
            _LOG.warning(
                "no reward applied to %d of the step's completions, first of sample %s: they have no total and train "
                "nothing; later ones are only counted (reward/no_total)",
                len(unscored),
                unscored[0],
            )
