"""From options to an executor that works; what is missing is an error here, before a run begins."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from grpo_core.api import RewardError
from grpo_core.machine import WAITING_A_CORE, available_cores
from grpo_rewards_code.executor.local import LocalExecutor
from grpo_rewards_code.executor.options import ExecutorOptions
from grpo_rewards_code.executor.types import Executor, ExecutorError
from grpo_rewards_code.sandbox.choose import choose

__all__ = ["ExecutorSetupError", "make_executor"]

_JOBS_ELSEWHERE = 8
_OWN_FOLDERS = ("/tmp", "/dev/shm")
"""Of each program, under bubblewrap."""


class ExecutorSetupError(RewardError, ExecutorError):
    """An executor cannot be made as the options say."""


def make_executor(options: ExecutorOptions, *, local_world_size: int = 1) -> Executor:
    """The executor that the options describe; a local one has been tried with a small program.

    Args:
        options: of the executor.
        local_world_size: how many ranks share this machine's cores.

    Raises:
        IsolationRefusedError: programs cannot be run as isolated as the options demand; with what to install.
        ExecutorSetupError: a service is not named, or by no address; the package to reach it is not installed; a folder
            to import from is not there, or hidden by a folder of the programs' own; more sandboxes are asked for than
            can be of use.
        ExecutorError: the interpreter for programs does not work, or a secret is not set.
    """
    if options.kind == "judge0":
        return _make_judge0(options)
    if options.kind == "e2b":
        return _make_e2b(options)
    _check_workers(options.workers)
    _check_folders(options.import_folders)
    plan = choose(
        isolation=options.isolation,
        min_isolation=options.min_isolation,
        interpreter=options.interpreter,
        import_folders=options.import_folders,
    )
    if plan.level == "bubblewrap":
        _check_visible(options.import_folders)
    return LocalExecutor(plan, options.workers or max(1, available_cores() // local_world_size))


def _make_judge0(options: ExecutorOptions) -> Executor:
    if options.judge0.url is None:
        raise ExecutorSetupError(
            "executor.kind is judge0, but there is no executor.judge0.url",
            hint="Name the service: --set rewards.code_reward.options.executor.judge0.url=http://judge0.example:2358",
        )
    _check_address(options.judge0.url)
    _need("httpx", "judge0")
    from grpo_rewards_code.executor.judge0 import Judge0Executor

    return Judge0Executor(options.judge0, options.judge0.url, options.workers or _JOBS_ELSEWHERE)


def _make_e2b(options: ExecutorOptions) -> Executor:
    sdk = _need("e2b", "e2b")
    from grpo_rewards_code.executor.e2b import E2bExecutor

    return E2bExecutor(options.e2b, sdk, options.workers or _JOBS_ELSEWHERE)


def _check_workers(workers: int | None) -> None:
    most = WAITING_A_CORE * available_cores()
    if workers is not None and workers > most:
        raise ExecutorSetupError(
            f"executor.workers is {workers}, and so many sandboxes are of no use on {available_cores()} cores",
            hint=f"Use at most {most} here, which is {WAITING_A_CORE} a core; by default it is one a core.",
        )


def _check_folders(folders: Sequence[str]) -> None:
    for folder in folders:
        if not os.path.isdir(folder):
            raise ExecutorSetupError(
                f"executor.import_folders: {folder} is {'no folder' if os.path.exists(folder) else 'not there'}",
                hint="Name folders that programs may import from, for instance the site-packages of an environment.",
            )


def _check_visible(folders: Sequence[str]) -> None:
    """Raise `ExecutorSetupError` for a folder that programs could not see, as they have one of their own above it."""
    for folder in folders:
        real = Path(folder).resolve()
        own = next((each for each in _OWN_FOLDERS if real.is_relative_to(each)), None)
        if own is not None:
            raise ExecutorSetupError(
                f"executor.import_folders: {folder} is below {own}, where every program has a folder of its own",
                hint="Put it elsewhere, for instance beside the recipe.",
            )


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that never ends
        good = False
    if not good:
        raise ExecutorSetupError(
            f"executor.judge0.url is {url!r}, which is no address of a service",
            hint="It begins with http:// or https://, for instance http://judge0.example:2358.",
        )


def _need(module: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ExecutorSetupError(
            f"executor.kind is {extra}, but {module} cannot be imported ({error})",
            hint=f"pip install 'grpo-rewards-code[{extra}]'",
        ) from error
