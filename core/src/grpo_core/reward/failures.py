"""What is done about failed scores, unscored completions and mixed groups: said once, with the row; too many failures
stop the run.

Place in the flow: outcomes → **failures** → totals.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from grpo_core.errors import RewardError
from grpo_core.reward.row_text import row_text
from grpo_core.types import Failed, Outcome, Sample

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
        self._mixed_reported: set[str] = set()

    def look(self, scored: Sequence[Judged], *, samples: Sequence[Sample], step: int) -> None:
        """Report what is new in a step; `samples` are those of the groups, in order.

        Raises `RewardError` when a reward failed on more than the share allowed.
        """
        names = scored[0].outcomes if scored else ()
        rows = {sample.id: sample for sample in samples}
        for name in names:
            failures = [
                (group.sample_id, outcome.reason)
                for group in scored
                for outcome in group.outcomes[name]
                if isinstance(outcome, Failed)
            ]
            if failures:
                self._report(name, failures, rows)
                applied = sum(outcome is not None for group in scored for outcome in group.outcomes[name])
                self._stop_if_too_many(name, failures, applied, step)
            self._report_mixed(name, scored, rows)
        self._report_unscored(scored, rows)

    def _report(self, name: str, failures: Sequence[tuple[str, str]], rows: Mapping[str, Sample]) -> None:
        seen = self._reported.setdefault(name, set())
        for sample_id, reason in failures:
            if reason in seen or len(seen) >= _MAX_REASONS:
                continue
            seen.add(reason)
            last = " (further reasons of this reward are only counted)" if len(seen) == _MAX_REASONS else ""
            row = row_text(rows[sample_id])
            _LOG.warning("reward '%s' failed on sample %s: %s; its row: %s%s", name, sample_id, reason, row, last)

    def _stop_if_too_many(self, name: str, failures: Sequence[tuple[str, str]], applied: int, step: int) -> None:
        share = len(failures) / applied
        if share <= self._max_failed_share:
            return
        sample_id, reason = failures[0]
        raise RewardError(
            f"reward '{name}' failed on {len(failures)} of {applied} completions ({share:.0%}) in step {step}, more "
            f"than scoring.max_failed_share={self._max_failed_share:g} allows; first on sample {sample_id}: {reason}",
            hint=f"Mend the reward, or have it return None for samples it cannot judge{_allowing(share)}.",
        )

    def _report_mixed(self, name: str, scored: Sequence[Judged], rows: Mapping[str, Sample]) -> None:
        mixed = [group.sample_id for group in scored if _is_mixed(group.outcomes[name])]
        if mixed and name not in self._mixed_reported:
            self._mixed_reported.add(name)
            _LOG.warning(
                "reward '%s' applied to some completions of sample %s and not to others, which are then compared by "
                "different measures: let it return None by what the row is, not by what the completion says; its row: "
                "%s; later ones are only counted (rewards/%s/mixed_groups)",
                *(name, mixed[0], row_text(rows[mixed[0]]), name),
            )

    def _report_unscored(self, scored: Sequence[Judged], rows: Mapping[str, Sample]) -> None:
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
                "nothing; its row: %s; later ones are only counted (reward/no_total)",
                *(len(unscored), unscored[0], row_text(rows[unscored[0]])),
            )


def _allowing(share: float) -> str:
    """How to go on all the same, where something is left to train on."""
    allowed = math.ceil(share * 10 + 1e-9) / 10
    if allowed >= 1:
        return ""
    setting = f"--set scoring.max_failed_share={max(allowed, 0.5):g}"
    return f"; or allow more failures with {setting} (failed completions are left out of the update)"


def _is_mixed(outcomes: Sequence[Outcome]) -> bool:
    applied = sum(outcome is not None for outcome in outcomes)
    return 0 < applied < len(outcomes)
