"""What the loop has had its trainer do, so that something is known of the weights when a run fails.

Place in the flow: `parts` puts it around the backend; everyone calls the backend as before; `rescue` asks it whether
there is anything to save.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from safetensors import SafetensorError

from grpo_core.errors import CheckpointError
from grpo_core.protocols import TrainerBackend

__all__ = ["TrainerCalls"]

_CHANGING = ("update", "restore")
_WRITING = ("save", "export", "export_adapter")


class TrainerCalls:
    """Counts the calls of one trainer backend."""

    def __init__(self) -> None:
        self.done = 0
        """Calls that ended well. Ranks with different numbers are not at the same place."""
        self.has_changed = False
        """Whether the weights may be others than those of the last whole step."""
        self._begun = 0

    @property
    def is_inside(self) -> bool:
        """Whether a call was cut off, and with it, on several ranks, perhaps a collective."""
        return self._begun != self.done

    def around(self, backend: TrainerBackend) -> TrainerBackend:
        """The same backend, counted."""
        return cast(TrainerBackend, _Counted(backend, self))

    @contextmanager
    def counted(self, name: str) -> Iterator[None]:
        """One call of a method."""
        self._begun += 1
        self.has_changed |= name in _CHANGING
        try:
            yield
        except (OSError, CheckpointError, SafetensorError):
            # A backend that cannot write says so once all ranks have done their parts, and the run goes on.
            self.done += name in _WRITING
            raise
        self.done += 1


class _Counted:
    """Passes everything on to a trainer backend."""

    def __init__(self, backend: TrainerBackend, calls: TrainerCalls) -> None:
        self._backend = backend
        self._calls = calls

    def iter_weights(self) -> Iterator[Any]:
        """A stream is one call, until its end: each weight may be a collective."""
        with self._calls.counted("iter_weights"):
            yield from self._backend.iter_weights()

    def __getattr__(self, name: str) -> Any:
        """The backend's own, which may have more than the protocol says."""
        found = getattr(self._backend, name)
        return _counted(found, self._calls, name) if callable(found) else found


def _counted(method: Callable[..., Any], calls: TrainerCalls, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **more: Any) -> Any:
        with calls.counted(name):
            return method(*arguments, **more)

    return call
