"""The isolations that work on this machine, for tests that must hold in each of them."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache

import pytest

from grpo_rewards_code.executor.local import LocalExecutor
from grpo_rewards_code.executor.types import Job, Limits, Run, RunResult, StdinRun
from grpo_rewards_code.sandbox.bubblewrap import Mode
from grpo_rewards_code.sandbox.inside import landlock
from grpo_rewards_code.sandbox.layout import find_layout
from grpo_rewards_code.sandbox.plan import Plan, make_plan

MODES: tuple[Mode, ...] = ("nested", "single", "alone")
QUICK = Limits(wall_s=20.0, cpu_s=10.0)


@cache
def plan_for(mode: Mode) -> Plan:
    """How to start sandboxes of a mode; the test is skipped where the machine has not got what the mode is made of."""
    if mode == "alone":
        if landlock.abi() == 0:
            pytest.skip("this kernel has no Landlock")
        return make_plan("landlock", mode, find_layout(None, ()), (), None)
    bubblewrap = need_bubblewrap()
    if mode == "nested":
        _need_nested_namespaces()
    return make_plan("bubblewrap", mode, find_layout(None, ()), (), bubblewrap)


@cache
def need_bubblewrap() -> str:
    """Where bubblewrap is; skips where it is not installed, or may not make namespaces (most containers)."""
    found = shutil.which("bwrap")
    if found is None:
        pytest.skip("bubblewrap is not installed")
    if subprocess.run([found, "--unshare-all", "--ro-bind", "/", "/", "true"], capture_output=True).returncode:
        pytest.skip("namespaces are refused on this machine")
    return found


@cache
def _need_nested_namespaces() -> None:
    tool = shutil.which("unshare")
    if tool is None:
        return
    outer = [need_bubblewrap(), "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc"]
    nested = [*outer, tool, "--user", "--map-current-user", "--mount", "true"]
    if subprocess.run(nested, capture_output=True).returncode:
        pytest.skip("namespaces within namespaces are refused on this machine")


class Place:
    """Runs programs at one isolation."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.executor = LocalExecutor(plan_for(mode), workers=2)

    def run(self, program: str, *runs: Run, limits: Limits = QUICK, stop_at_failure: bool = True) -> list[RunResult]:
        """Run a job."""
        job = Job(program=program, runs=runs, limits=limits, stop_at_failure=stop_at_failure)
        return list(asyncio.run(self._run(job)))

    def script(self, program: str, stdin: str = "", limits: Limits = QUICK) -> RunResult:
        """Run a program once, as a script."""
        return self.run(program, StdinRun(stdin=stdin), limits=limits)[0]

    def scripts(self, programs: Iterable[str], stdin: str = "", limits: Limits = QUICK) -> list[RunResult]:
        """Run several programs at a time."""
        jobs = [Job(program=program, runs=[StdinRun(stdin=stdin)], limits=limits) for program in programs]
        return [results[0] for results in asyncio.run(self._run_all(jobs))]

    def says(self, program: str, stdin: str = "") -> str:
        """What a program prints that must end well."""
        result = self.script(program, stdin)
        assert result.status == "ok", result
        return result.stdout.strip()

    async def _run_all(self, jobs: Sequence[Job]) -> list[Sequence[RunResult]]:
        return await asyncio.gather(*map(self.executor.run, jobs))

    async def _run(self, job: Job) -> Sequence[RunResult]:
        return await self.executor.run(job)
