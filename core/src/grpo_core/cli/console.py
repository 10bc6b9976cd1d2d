"""The two consoles every command prints to."""

from __future__ import annotations

import json

from rich.console import Console

__all__ = ["print_json", "stderr", "stdout"]

stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Print plain values as JSON, for other programs: never wrapped, never coloured."""
    stdout.out(json.dumps(value, indent=2, ensure_ascii=False))
