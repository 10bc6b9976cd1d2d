"""`grpoctl rollout`: vLLM's own server with what a run needs of it, from start to end.

Prints the command that it runs, so that anyone can start the same by hand; says when the server is ready and how a run
connects; ends it with all its processes on Ctrl-C, SIGTERM or SIGHUP, and when it is killed itself.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from types import FrameType

from grpo_core.api import PluginError, RolloutError
from grpo_core.backends import ModelSettings
from grpo_core.orphans import die_with_parent
from grpo_rollout_vllm.guard import Guard, end_group
from grpo_rollout_vllm.launch import INSTALL_HINT, is_cpu_build, server_command, server_environment
from grpo_rollout_vllm.room import require_devices

__all__ = ["serve"]

_TICK_S = 0.5
_GRACE_S = 20.0
_THIS_MACHINE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""All addresses of it, and one of them."""


def serve(model: ModelSettings, *, host: str, port: int, arguments: Sequence[str]) -> int:
    """Run a server until it ends or is interrupted; gives its exit code, 0 when it was asked to end."""
    if importlib.util.find_spec("vllm") is None:
        raise PluginError("vLLM is not installed here", hint=INSTALL_HINT)
    require_devices(arguments, on_cpu=is_cpu_build())
    _require_free(host, port)
    command = server_command(model, host=host, port=port, arguments=arguments)
    environment = server_environment(arguments)
    added = {name: value for name, value in environment.items() if name not in os.environ}
    print(shlex.join([*(f"{name}={value}" for name, value in added.items()), *command]), flush=True)
    guard, parent = Guard(), os.getpid()
    server = subprocess.Popen(
        command,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: die_with_parent(parent, by=signal.SIGTERM),
    )
    guard.watch(server.pid)
    asked: list[int] = []

    def ask(number: int, _: FrameType | None) -> None:
        asked.append(number)
        server.terminate()

    before = {number: signal.signal(number, ask) for number in _asking()}
    try:
        when = _watch(server, _url(_THIS_MACHINE.get(host, host), port), _url(_public_name(host), port))
    finally:
        _end(server)
        guard.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    if asked:
        return 0
    code = server.returncode
    how = f"with {code}" if code >= 0 else f"by signal {-code}"
    print(f"error: the server ended {how} {when}", file=sys.stderr, flush=True)
    return code if code > 0 else 4


def _require_free(host: str, port: int) -> None:
    """vLLM finds out late, and meanwhile whoever has the port would look like the server."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise RolloutError(
            f"no server can listen at {host}, port {port}: {error.strerror or error}",
            hint="does another one run there? Choose another --port, or another --host",
        ) from error


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _asking() -> list[signal.Signals]:
    """The signals that ask it to end; a hangup is none where it was told to ignore them, as by nohup."""
    ignores_hangups = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignores_hangups else [signal.SIGHUP])]


def _public_name(host: str) -> str:
    """What others reach this machine by, where a server listens at all of its addresses."""
    return socket.gethostname() if host in _THIS_MACHINE else host


def _watch(server: subprocess.Popen[bytes], url: str, public: str) -> str:
    """Wait for the server to be ready, say so, and wait for its end; when that was, as a clause. By looking, not by one
    long wait: a signal that comes just before that would be heard after it."""
    started, is_ready = time.monotonic(), False
    while server.poll() is None:
        if not is_ready and _is_ready(url):
            is_ready = True
            print(f"ready after {time.monotonic() - started:.0f} s. A run connects with:", flush=True)
            print(f"  grpoctl train --rollout vllm --set rollout.options.urls=[{public}] …", flush=True)
        time.sleep(_TICK_S)
    return "while it served; what it printed says why" if is_ready else "before it was ready"


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _end(server: subprocess.Popen[bytes]) -> None:
    """Leave no process behind: vLLM's engine and workers are in the server's session."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(_GRACE_S)
    end_group(server.pid, look=server.poll)
    server.wait()
