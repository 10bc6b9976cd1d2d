"""How a sandbox of a level is started: the messages and the command that lead from the host to a zygote."""

from __future__ import annotations

import importlib.resources
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from grpo_rewards_code.sandbox.bubblewrap import Mode, command, environment
from grpo_rewards_code.sandbox.layout import Layout

__all__ = ["Level", "Plan", "make_plan", "sources"]

Level = Literal["bubblewrap", "landlock"]

NOBODY = 65534
"""The user that a sandbox started by root runs as."""
# fmt: off
_PRELOADED = (
    "abc", "array", "ast", "bisect", "cmath", "collections", "collections.abc", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "enum", "fractions",
    "functools", "heapq", "io", "itertools", "json", "math", "numbers", "operator", "os", "queue", "random", "re",
    "statistics", "string", "struct", "sys", "textwrap",
    "threading", "time", "traceback", "types", "typing", "unittest",
)
_TEMPORARY = ("/tmp", "/var/tmp")
"""Where everybody may write, and not only who started the run."""
_PACKAGE = "grpo_rewards_code"
_INSIDE = (
    "bootstrap", "child", "enter", "folder", "kernel", "landlock", "namespaces", "privileges", "program", "seccomp",
    "syscalls", "watch", "zygote",
)
_SCRIPT = (
    "changes", "collect", "describe", "equal", "forms", "guard", "marks", "peer", "pytest_names", "record", "run",
    "served", "stubs", "talk",
)
_PACKAGES = ("executor", "sandbox", "sandbox.inside", "script", "script.inside")
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to start a sandbox."""

    level: Level
    """What confines programs."""
    mode: Mode
    """How runs are kept apart."""
    python: tuple[str, ...]
    """The command that starts a bare interpreter; the number of its end of the line comes behind."""
    environment: dict[str, str]
    """Its environment."""
    user: int | None
    """The user that it becomes; None to stay who it is."""
    messages: tuple[bytes, ...]
    """What it is told, in order."""


def make_plan(level: Level, mode: Mode, layout: Layout, import_folders: Sequence[str], bubblewrap: str | None) -> Plan:
    """The plan of a level."""
    python = (layout.executable, "-s", "-S", "-P", "-B", "-c", _text("sandbox/inside/bootstrap.py"))
    user = NOBODY if os.geteuid() == 0 else None
    inner = None if bubblewrap is None else command(bubblewrap, layout, mode, python)
    entering = {"user": user, "reveal": layout.paths, "command": inner}
    serving = {
        "mode": mode,
        "readable": layout.paths,
        "import_folders": list(import_folders),
        "preload": _PRELOADED,
        "temporary": list(dict.fromkeys([tempfile.gettempdir(), *_TEMPORARY])),
    }
    return Plan(
        level=level,
        mode=mode,
        python=python,
        environment=environment(),
        user=user,
        messages=(_message("enter", entering), _message("zygote", serving)),
    )


def _message(module: str, configuration: object) -> bytes:
    main = f"{_PACKAGE}.sandbox.inside.{module}"
    return json.dumps({"sources": sources(), "main": main, "configuration": configuration}).encode()


@cache
def sources() -> dict[str, str | None]:
    """The modules that are sent to an interpreter: name -> source, None for a package."""
    packages = [_PACKAGE, *(f"{_PACKAGE}.{name}" for name in _PACKAGES)]
    names = [*(f"sandbox.inside.{name}" for name in _INSIDE), *(f"script.inside.{name}" for name in _SCRIPT)]
    modules = {f"{_PACKAGE}.{name}": _text(f"{name.replace('.', '/')}.py") for name in names}
    return {**dict.fromkeys(packages), **modules, f"{_PACKAGE}.executor.values": _text("executor/values.py")}


@cache
def _text(path: str) -> str:
    return importlib.resources.files(_PACKAGE).joinpath(path).read_text(encoding="utf-8")
