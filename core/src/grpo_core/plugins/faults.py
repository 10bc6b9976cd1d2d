"""What went wrong in somebody else's code, in one line: the exception and the place it came from.

Used wherever plugin code runs: at import, in hooks, in factories, in observers.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from dataclasses import dataclass
from types import TracebackType

import pluggy

from grpo_core import plugins

__all__ = ["Fault", "describe", "short_path"]

_OURS = tuple(os.path.dirname(str(module.__file__)) + os.sep for module in (importlib, pluggy, plugins))


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception of foreign code, as text."""

    what: str
    """`ModuleNotFoundError: No module named 'sympy'`."""
    where: str | None
    """`grpo_acme/plugin.py:3`, the innermost line of Python source; None when there is none."""
    traceback: str
    """In full."""

    def __str__(self) -> str:
        return f"{self.what} ({self.where})" if self.where else self.what


def describe(error: BaseException) -> Fault:
    """Say what an exception is and where it was raised."""
    return Fault(_what(error), _where(error), _traceback(error))


def short_path(filename: str) -> str:
    """A source file relative to the folder Python imports it from: `grpo_acme/plugin.py`."""
    roots = [root for root in map(os.path.abspath, sys.path) if filename.startswith(root + os.sep)]
    return os.path.relpath(filename, max(roots, key=len)) if roots else filename


def _what(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({error.code!r})"
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    first_line = message.strip().partition("\n")[0]
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__


def _where(error: BaseException) -> str | None:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{short_path(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(_foreign(error.__traceback__))
    files = [frame for frame in frames if os.path.isfile(frame.filename)]
    return f"{short_path(files[-1].filename)}:{files[-1].lineno}" if files else None


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, _foreign(error.__traceback__)))


def _foreign(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins where ours, pluggy's and the import system's ends; all of it if none does."""
    rest = trace
    while rest is not None and _is_ours(rest.tb_frame.f_code.co_filename):
        rest = rest.tb_next
    return rest or trace


def _is_ours(filename: str) -> bool:
    return filename.startswith(("<frozen importlib", *_OURS))
