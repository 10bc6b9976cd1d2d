"""Which isolation is chosen, and what is said when none will do; each with what the machine really refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from grpo_core.errors import RewardError
from grpo_rewards_code.executor.types import ExecutorError
from grpo_rewards_code.sandbox import choose as module
from grpo_rewards_code.sandbox.choose import IsolationRefusedError, choose, describe
from grpo_rewards_code.sandbox.inside import landlock
from tests.plugins.grpo_rewards_code.places import need_bubblewrap, plan_for

_ROOT = Path(__file__).parents[4]

_TRY = """
import asyncio, json, os, sys
sys.path.insert(0, {root!r})
from grpo_rewards_code.executor.make import make_executor
from grpo_rewards_code.executor.options import ExecutorOptions
from grpo_rewards_code.executor.types import ExecutorError, Job, StdinRun
from grpo_rewards_code.sandbox.inside import landlock, privileges, seccomp, kernel
from grpo_rewards_code.sandbox.layout import find_layout
import grpo_rewards_code.executor.local, concurrent.futures.thread, tempfile, selectors, socket, subprocess
{before}
try:
    executor = make_executor(ExecutorOptions.model_validate({options!r}))
    job = Job(program="import os\\nprint(6 * int(input()), os.getuid())", runs=[StdinRun(stdin="7")])
    (result,) = asyncio.run(executor.run(job))
    asyncio.run(executor.aclose())
    print(json.dumps({{"description": executor.describe(), "stdout": result.stdout, "detail": result.detail}}))
except ExecutorError as error:
    print(json.dumps({{"error": str(error)}}))
"""
_NO_NAMESPACES = """
kernel.set_no_new_privileges()
seccomp.install(seccomp.compiled(seccomp.in_namespaces()))
"""
_ORDINARY_USER = f"""
if os.geteuid() == 0:
    privileges.reveal([sys.base_prefix, {str(_ROOT)!r}])
    privileges.become(12345, 12345)
"""


@pytest.fixture(autouse=True)
def _nothing_tried_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORKED", {})


def test_what_worked_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _need_landlock()
    plan = choose(isolation="landlock")
    monkeypatch.setattr(module, "find_layout", lambda *arguments: pytest.fail("tried again"))
    assert choose(isolation="landlock") is plan


def _tried(before: str, environment: Mapping[str, str] | None = None, **options: object) -> dict[str, str]:
    """What an executor gives in an interpreter where something was done before."""
    script = _TRY.format(root=str(_ROOT), before=before, options=options)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **(environment or {})}
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def _need_landlock() -> None:
    plan_for("alone")


def test_bubblewrap_is_chosen_where_it_works() -> None:
    need_bubblewrap()
    found = _tried("")
    assert found["description"].startswith("bubblewrap: no network, no file outside, no surviving process")
    assert found["stdout"] == "42 1000\n"


def test_an_ordinary_user_gets_it_too() -> None:
    need_bubblewrap()
    found = _tried(_ORDINARY_USER, min_isolation="bubblewrap")
    assert found.get("stdout") == "42 1000\n", found
    assert "as user" not in found["description"]


def test_an_ordinary_user_gets_landlock() -> None:
    _need_landlock()
    found = _tried(_ORDINARY_USER, isolation="landlock")
    assert found.get("stdout", "").startswith("42 "), found


@pytest.mark.parametrize("user", ["", _ORDINARY_USER], ids=["as it is", "ordinary"])
def test_where_namespaces_are_refused_landlock_is_chosen(user: str) -> None:
    _need_landlock()
    found = _tried(user + _NO_NAMESPACES)
    assert found.get("description", "").startswith("landlock (ABI"), found
    assert found["stdout"].startswith("42 ")
    assert found["stdout"] != "42 0\n"


def test_where_namespaces_are_refused_and_no_less_will_do_nothing_runs() -> None:
    need_bubblewrap()
    error = _tried(_NO_NAMESPACES, min_isolation="bubblewrap")["error"]
    assert "programs cannot be run in isolation on this machine" in error
    assert "bubblewrap: a sandbox did not start: " in error
    assert "let users make namespaces" in error


def test_without_bubblewrap_landlock_is_chosen(tmp_path: Path) -> None:
    _need_landlock()
    assert _tried("", {"PATH": str(tmp_path)})["description"].startswith("landlock (ABI")


def test_without_bubblewrap_what_demands_it_is_refused_with_what_to_install(tmp_path: Path) -> None:
    error = _tried("", {"PATH": str(tmp_path)}, isolation="bubblewrap")["error"]
    assert "bubblewrap: there is no command bwrap" in error
    assert "apt-get install bubblewrap" in error


def test_without_anything_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    with pytest.raises(IsolationRefusedError, match="no Landlock") as caught:
        choose()
    assert isinstance(caught.value, RewardError)
    assert "judge0" in str(caught.value)


def test_landlock_is_refused_where_bubblewrap_is_the_least() -> None:
    with pytest.raises(IsolationRefusedError, match="weaker than min_isolation"):
        choose(isolation="landlock", min_isolation="bubblewrap")


def test_where_runs_cannot_have_namespaces_of_their_own_each_gets_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    need_bubblewrap()
    fault = module._fault
    monkeypatch.setattr(module, "_fault", lambda plan: "refused" if plan.mode == "nested" else fault(plan))
    plan = choose(isolation="bubblewrap")
    assert plan.mode == "single"
    assert "a sandbox for each run" in describe(plan)


def test_an_interpreter_that_does_not_exist_is_an_error_of_the_executor() -> None:
    with pytest.raises(ExecutorError, match="'/nowhere/python' for programs cannot be used"):
        choose(interpreter="/nowhere/python")


def test_an_interpreter_that_is_none_is_an_error_of_the_executor() -> None:
    with pytest.raises(ExecutorError, match="cannot be used"):
        choose(interpreter="/bin/true")
