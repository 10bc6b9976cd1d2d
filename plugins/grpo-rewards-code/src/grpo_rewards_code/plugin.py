"""What this distribution registers."""

from __future__ import annotations
