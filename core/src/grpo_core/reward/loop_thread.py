"""Asynchronous rewards: all calls of a step wait together on one event loop in a thread of its own.

Place in the flow: completions → **loop thread** → outcomes.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future

from grpo_core.plugins.faults import describe
from grpo_core.reward.call import CallResult, await_call, failed_call

__all__ = ["LoopThread"]

_GRACE_S = 2.0
_CLOSE_LIMIT_S = 10.0
_LOG = logging.getLogger("grpo_core")


class LoopThread:
    """An event loop in a daemon thread, started with the first call."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(
        self,
        function: Callable[..., Awaitable[object]],
        arguments: Mapping[str, object],
        *,
        count: int,
        records: bool,
        deadline_s: float,
    ) -> Callable[[], CallResult]:
        """Start a call; what is returned waits for its result."""
        loop = self._running_loop()
        future = asyncio.run_coroutine_threadsafe(
            await_call(function, arguments, count=count, records=records, deadline_s=deadline_s), loop
        )
        until = time.monotonic() + deadline_s + _GRACE_S
        return lambda: self._result(future, loop, until, count)

    def close(self, finalizers: Iterable[Callable[[], Coroutine[object, object, None]]] = ()) -> None:
        """Await the finalizers on the loop, if anything ever ran on it; then cancel what still waits, and end the
        thread. A finalizer that fails or takes too long is reported, and the next one has its turn."""
        if self._loop is not None:
            for finalizer in finalizers:
                future = asyncio.run_coroutine_threadsafe(finalizer(), self._loop)
                try:
                    future.result(_CLOSE_LIMIT_S)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code, and the others must be closed all the same
                    future.cancel()
                    _LOG.warning("a reward could not be closed: %s", describe(error))
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_CLOSE_LIMIT_S)

    def _result(
        self, future: Future[CallResult], loop: asyncio.AbstractEventLoop, until: float, count: int
    ) -> CallResult:
        try:
            return future.result(max(until - time.monotonic(), 0.0))
        except TimeoutError:
            # The call's own deadline has passed unnoticed: some reward blocks the loop. Later calls get a new one.
            loop.call_soon_threadsafe(loop.stop)
            if self._loop is loop:
                self._loop = self._thread = None
            return failed_call(
                "missed its deadline, and the event loop did not get to say so: an asynchronous reward blocks "
                "(time.sleep or a synchronous request inside async def)",
                count,
            )

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=[self._loop], name="reward-loop", daemon=True)
            self._thread.start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        while not _ran_until_stopped(loop):
            pass
        waiting = asyncio.all_tasks(loop)
        for task in waiting:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _ran_until_stopped(loop: asyncio.AbstractEventLoop) -> bool:
    """Run the loop; False where a task that nobody awaits has thrown it out, as only `sys.exit` and Ctrl-C do."""
    try:
        loop.run_forever()
    except (SystemExit, KeyboardInterrupt) as error:
        _LOG.warning("a task of an asynchronous reward was ended: %s", describe(error))
        return False
    return True
