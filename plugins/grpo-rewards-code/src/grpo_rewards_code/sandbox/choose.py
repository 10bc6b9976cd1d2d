"""Which isolation is in force: the strongest that works here, found by trying, or a refusal that says what to do.

Levels, from strong to weak, are `bubblewrap` (namespaces of its own for every program) and `landlock` (Landlock,
seccomp and limits on one process). Both keep a program from the network, from files outside and from leaving a process
behind; less than that is not offered.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from grpo_core.api import RewardError
from grpo_rewards_code.executor.types import ExecutorError, Limits
from grpo_rewards_code.sandbox.inside import landlock
from grpo_rewards_code.sandbox.layout import Layout, find_layout
from grpo_rewards_code.sandbox.plan import Level, Plan, make_plan
from grpo_rewards_code.sandbox.process import Sandbox

__all__ = ["HOW_TO_GET_BUBBLEWRAP", "Isolation", "IsolationRefusedError", "choose", "describe"]

Isolation = Literal["auto", "bubblewrap", "landlock"]

HOW_TO_GET_BUBBLEWRAP = (
    "install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap) and let users "
    "make namespaces (sysctl user.max_user_namespaces; in a container, its seccomp and AppArmor profiles)"
)
"""What to do on a machine where it does not work."""
_ELSEWHERE = "or run programs elsewhere: executor.kind judge0 or e2b."


_WORKED: dict[tuple[object, ...], Plan] = {}
"""What was asked for in this process -> what worked: a run builds its rewards several times."""


class IsolationRefusedError(RewardError, ExecutorError):
    """Programs cannot be run here as isolated as was asked for."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    level: Level
    plan: Plan | None
    reason: str


def choose(
    *,
    isolation: Isolation = "auto",
    min_isolation: Level = "landlock",
    interpreter: str | None = None,
    import_folders: Sequence[str] = (),
) -> Plan:
    """The plan of the strongest level that works and is allowed.

    Args:
        isolation: one level, or `auto` for the strongest.
        min_isolation: the weakest that will do.
        interpreter: the Python that runs programs; this one by default.
        import_folders: folders that programs may import from, besides the standard library.

    Raises:
        IsolationRefusedError: nothing that is allowed works; with the reason of each.
        ExecutorError: the interpreter does not work.
    """
    asked = (isolation, min_isolation, interpreter, tuple(import_folders), shutil.which("bwrap"), os.geteuid())
    if asked in _WORKED:
        return _WORKED[asked]
    layout = find_layout(interpreter, import_folders)
    failures = []
    for attempt in _attempts(layout, import_folders, isolation, min_isolation):
        if attempt.plan is not None:
            _WORKED[asked] = attempt.plan
            return attempt.plan
        failures.append(f"{attempt.level}: {attempt.reason}")
    if isolation == "landlock" and min_isolation == "bubblewrap":
        failures.append("landlock: weaker than min_isolation, which is bubblewrap")
    raise IsolationRefusedError(
        "programs cannot be run in isolation on this machine\n  " + "\n  ".join(failures),
        hint=f"{HOW_TO_GET_BUBBLEWRAP[0].upper()}{HOW_TO_GET_BUBBLEWRAP[1:]}, {_ELSEWHERE}",
    )


def describe(plan: Plan) -> str:
    """One line: what confines programs."""
    user = "" if plan.user is None else f", as user {plan.user}"
    if plan.level == "landlock":
        return f"landlock (ABI {landlock.abi()}) and seccomp: no network, no new process, no file outside{user}"
    each = "each program in namespaces of its own" if plan.mode == "nested" else "a sandbox for each run"
    return f"bubblewrap: no network, no file outside, no surviving process, {each}{user}"


def _attempts(
    layout: Layout, import_folders: Sequence[str], isolation: Isolation, min_isolation: Level
) -> Iterator[_Attempt]:
    if isolation in ("auto", "bubblewrap"):
        yield _try_bubblewrap(layout, import_folders)
    if isolation in ("auto", "landlock") and min_isolation == "landlock":
        yield _try_landlock(layout, import_folders)


def _try_bubblewrap(layout: Layout, import_folders: Sequence[str]) -> _Attempt:
    found = shutil.which("bwrap")
    if found is None:
        return _Attempt("bubblewrap", None, "there is no command bwrap")
    # Namespaces within namespaces are refused by some security modules; then every run gets a sandbox.
    reasons = []
    for mode in ("nested", "single"):
        plan = make_plan("bubblewrap", mode, layout, import_folders, found)
        reason = _fault(plan)
        if reason is None:
            return _Attempt("bubblewrap", plan, "")
        reasons.append(reason)
    return _Attempt("bubblewrap", None, reasons[-1])


def _try_landlock(layout: Layout, import_folders: Sequence[str]) -> _Attempt:
    if landlock.abi() == 0:
        return _Attempt(
            "landlock", None, "this kernel has no Landlock, or it is switched off (Linux 5.13 or newer has it)"
        )
    plan = make_plan("landlock", "alone", layout, import_folders, None)
    return _Attempt("landlock", plan, "") if (reason := _fault(plan)) is None else _Attempt("landlock", None, reason)


def _fault(plan: Plan) -> str | None:
    """Run one small program; why that did not work, or None."""
    wanted = threading.Event()
    wanted.set()
    task = json.dumps({"kind": "stdin", "program": "print(6 * int(input()))"}).encode()
    try:
        sandbox = Sandbox(plan)
    except ExecutorError as error:
        return str(error)
    try:
        finished = sandbox.run(stdin=b"7\n", task=task, limits=Limits(), wanted=wanted)
    except ExecutorError as error:
        return str(error)
    finally:
        sandbox.close()
    if finished.stdout != b"42\n":
        return f"a trial program ended with status {finished.status}, {finished.limit}: {finished.errors.decode()}"
    return None
