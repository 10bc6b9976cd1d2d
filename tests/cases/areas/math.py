"""Cases of the area `math`: completions against a reference, from the main thread or another, with or without the
caller's own alarm. One scorer serves all of them, as it serves all steps of a run."""

from __future__ import annotations

import atexit
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_core.types import BuildContext
from tests.cases.decode import completion_text, decoded
from tests.cases.expect import difference
from tests.cases.scored import group_of, plain, plan_reward

__all__ = ["check"]

_ALARM_S = 60


def check(case: dict[str, Any]) -> str | None:
    """None when the scores are right and in time, and the caller's alarm is where it was; else what is wrong."""
    caller = case.get("call_from", "main thread")
    if "worker thread" in caller:
        return difference(_in_thread(lambda: _outcome(case)), case)
    with _pending_alarm("signal.alarm" in caller) as is_pending:
        outcome = _outcome(case)
        if not is_pending():
            return "the caller's alarm is gone"
    return difference(outcome, case)


def _outcome(case: dict[str, Any]) -> object:
    if "completions_repeat" not in case:
        (outcome,) = _score(case, [completion_text(case)])
        return outcome
    repeat = case["completions_repeat"]
    # Different thoughts before each, or the framework would see one completion and judge it once.
    return _score(case, [f"{member}\n{repeat['completion']}" for member in range(repeat["times"])])


def _score(case: dict[str, Any], texts: Sequence[str]) -> list[object]:
    scorer = _scorer(case["reward"])
    began = time.monotonic()
    step = scorer.begin(step=1, epoch=0.0, progress=0.0, max_steps=1)
    step.add(group_of(texts, {"solution": decoded(case["solution"])}))
    (scored,) = step.finish()
    took_s, limit_s = time.monotonic() - began, case.get("time_limit_s")
    assert limit_s is None or took_s <= limit_s, f"took {took_s:.1f} s, more than {limit_s} s"
    (outcomes,) = scored.outcomes.values()
    return [plain(outcome) for outcome in outcomes]


@lru_cache(maxsize=1)
def _scorer(name: str) -> Scorer:
    scorer = Scorer([plan_reward(name)], ScoringSettings(max_failed_share=1.0), {"solution"}, BuildContext())
    atexit.register(scorer.close)
    return scorer


def _in_thread(call: Callable[[], object]) -> object:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0] if found else "the thread ended with an exception"


@contextmanager
def _pending_alarm(wanted: bool) -> Iterator[Callable[[], bool]]:
    """Set the caller's own alarm, and take it away afterwards; says whether it is still pending."""
    if not wanted:
        yield lambda: True
        return
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.alarm(_ALARM_S)
    try:
        yield lambda: signal.getsignal(signal.SIGALRM) is signal.SIG_IGN and signal.getitimer(signal.ITIMER_REAL)[0] > 0
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
