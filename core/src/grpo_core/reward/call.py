"""One call of a reward function, wherever it runs: whatever it does, outcomes and records come of it.

This is the boundary to foreign code. An exception, an exit and a wrong return become `Failed` with the place in the
function's source; nothing becomes a number. Imports no torch: worker processes run it too.

Place in the flow: completions → **call** → outcomes → totals.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from grpo_core.plugins.faults import describe
from grpo_core.reward.outcomes import WrongReturnError, all_failed, read_outcomes
from grpo_core.types import Outcome

__all__ = ["CallResult", "Recorder", "await_call", "call", "failed_call", "is_async", "too_long"]

_LOG = logging.getLogger("grpo_core")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What one call gave."""

    outcomes: tuple[Outcome, ...]
    """One a completion."""
    records: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """Name -> one value a completion."""


class Recorder:
    """The `record` argument: `record("parsed", values)` keeps values beside the scores of this call."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.values: dict[str, tuple[object, ...]] = {}

    def __call__(self, name: str, values: object) -> None:
        """Keep a list or tuple of one value a completion, or one value for all of them."""
        if isinstance(values, list | tuple):
            if len(values) != self._count:
                raise ValueError(f"record({name!r}) got {len(values)} values for {self._count} completions")
            self.values[name] = tuple(values)
        else:
            self.values[name] = (values,) * self._count


def is_async(function: object) -> bool:
    """Whether calling it gives a coroutine: an `async def`, a partial of one, or an object whose `__call__` is one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def failed_call(reason: str, count: int) -> CallResult:
    """The result of a call that gave nothing."""
    return CallResult(outcomes=all_failed(reason, count))


def too_long(deadline_s: float) -> str:
    """The reason of a call that missed its outer deadline."""
    return f"took longer than its deadline of {deadline_s:g} s"


def call(
    function: Callable[..., object],
    arguments: Mapping[str, object],
    *,
    count: int,
    records: bool,
    deadline_s: float | None = None,
) -> CallResult:
    """Call a synchronous function on `count` completions in this thread.

    Nothing can stop it here, so at the deadline a warning says who hangs; a result that comes later has failed all the
    same, so that a reward means the same wherever it runs.
    """
    recorder = Recorder(count)
    started = time.monotonic()
    try:
        with _told_when_overdue(function, deadline_s):
            returned = function(**arguments, **({"record": recorder} if records else {}))
        outcomes = read_outcomes(returned, count)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code, of which anything may come
        return failed_call(_reason(error), count)
    if deadline_s is not None and time.monotonic() - started > deadline_s:
        return failed_call(f"{too_long(deadline_s)}; `runs_in: worker` would have stopped it", count)
    return CallResult(outcomes=outcomes, records=recorder.values)


async def await_call(
    function: Callable[..., Awaitable[object]],
    arguments: Mapping[str, object],
    *,
    count: int,
    records: bool,
    deadline_s: float | None = None,
) -> CallResult:
    """Await an `async def` function on `count` completions; at the deadline it is cancelled and has failed."""
    recorder = Recorder(count)
    timer = asyncio.timeout(deadline_s)
    try:
        async with timer:
            returned = await function(**arguments, **({"record": recorder} if records else {}))
        outcomes = read_outcomes(returned, count)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code, of which anything may come
        reason = too_long(deadline_s or 0.0) if timer.expired() else _reason(error)
        return failed_call(reason, count)
    return CallResult(outcomes=outcomes, records=recorder.values)


@contextmanager
def _told_when_overdue(function: object, deadline_s: float | None) -> Iterator[None]:
    """Say on the way that a call has not come back: neither Ctrl-C nor SIGTERM stops it before it does."""
    if deadline_s is None:
        yield
        return
    name = getattr(function, "__qualname__", type(function).__qualname__)
    message = "reward function %s has been running for %g s, its deadline, in the main process, where nothing can stop "
    timer = threading.Timer(
        min(deadline_s, threading.TIMEOUT_MAX),
        _LOG.warning,
        [f"{message}it; `runs_in: worker` would have it killed", name, deadline_s],
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _reason(error: BaseException) -> str:
    if isinstance(error, WrongReturnError):
        return str(error)
    fault = describe(error)
    return str(fault) if isinstance(error, SystemExit) else f"raised {fault}"
