"""Why a text has no value that could be compared: the tree of errors inside this package."""

from __future__ import annotations

__all__ = ["NotRationalError", "TooLargeError", "UnreadableError"]


class UnreadableError(ValueError):
    """The text states no mathematical value, or no single one."""


class NotRationalError(UnreadableError):
    """The text is not plain rational arithmetic; it may still be an expression."""


class TooLargeError(UnreadableError):
    """Evaluating the text would take too much time or memory."""
