"""Killing a real vLLM server at a chosen moment of a run."""

from __future__ import annotations

import contextlib
import time
from typing import Literal

from tests.plugins.grpo_rollout_vllm.real_server import RealServer

Moment = Literal["generation", "update", "between"]
_LIMIT_S = 300.0


def kill_in(server: RealServer, moment: Moment) -> None:
    """kill -9 the server while it generates, while it takes weights, or between two steps."""
    until = time.monotonic() + _LIMIT_S
    before = server.label()
    while not _has_come(server, moment, before):
        if time.monotonic() > until:
            raise AssertionError(f"no {moment} within {_LIMIT_S:g} s")
        time.sleep(0.002)
    server.kill()


def _has_come(server: RealServer, moment: Moment, before: str) -> bool:
    with contextlib.suppress(OSError):
        match moment:
            case "generation":
                return bool(server.running())
            case "update":
                return bool(server.get("/is_paused")["is_paused"])
            case "between":
                return server.label() != before and not server.running()
    return False
