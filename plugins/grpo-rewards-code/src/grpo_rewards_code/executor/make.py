"""From options to an executor that works; what is missing is an error here, before a run begins."""

from __future__ import annotations

import os

from grpo_rewards_code.executor.local import LocalExecutor
from grpo_rewards_code.executor.options import ExecutorOptions
from grpo_rewards_code.executor.types import Executor
from grpo_rewards_code.sandbox.choose import choose

__all__ = ["make_executor"]


def make_executor(options: ExecutorOptions, *, local_world_size: int = 1) -> Executor:
    """The executor that the options describe; a local one has been tried with a small program.

    Args:
        options: of the executor.
        local_world_size: how many ranks share this machine's cores.

    Raises:
        IsolationRefusedError: programs cannot be run as isolated as the options demand; with what to install.
        ExecutorError: the interpreter for programs does not work.
    """
    plan = choose(
        isolation=options.isolation,
        min_isolation=options.min_isolation,
        interpreter=options.interpreter,
        import_folders=options.import_folders,
    )
    cores = len(os.sched_getaffinity(0))
    return LocalExecutor(plan, options.workers or max(1, cores // local_world_size))
