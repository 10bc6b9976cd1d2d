"""The two consoles every command prints to."""

from __future__ import annotations

from rich.console import Console

__all__ = ["stderr", "stdout"]

stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)
