"""What can be set about `code_reward`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from grpo_rewards_code.executor.options import ExecutorOptions
from grpo_rewards_code.executor.types import Limits

__all__ = ["CodeRewardOptions"]

_Seconds = Annotated[float, Field(ge=1e-3, le=1e6)]
_WALL_PER_CPU_SECOND = 3.0
_WALL_BEYOND_CPU_S = 10.0
"""The clock is for programs that wait without computing: on a loaded machine a right one must not meet it."""


class CodeRewardOptions(BaseModel):
    """Options of the reward `code_reward`. A program that exceeds a limit is wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    partial: bool = False
    """Pay the share of tests that pass, and not only all or nothing."""
    timeout_s: _Seconds = 6.0
    """Processor time that one test may take; by the clock, three times as much, and at least 10 s more."""
    total_timeout_s: _Seconds = 120.0
    """Time by the clock that all tests of one program may take together."""
    memory_mib: int = Field(default=512, ge=32, le=2**20)
    """Memory that a program may take."""
    processes: int = Field(default=16, ge=1, le=4096)
    """Processes and threads that a program may have, where the isolation lets it start any."""
    output_kib: int = Field(default=4096, ge=1, le=2**20)
    """What a program may print in one test."""
    file_mib: int = Field(default=16, ge=0, le=2**20)
    """The largest file that a program may write, in its own empty folder."""
    relative_tolerance: float = Field(default=1e-6, ge=0, lt=1)
    """How far a number with a fraction may be off, as a share of the expected one."""
    absolute_tolerance: float = Field(default=1e-9, ge=0, le=1e6)
    """How far it may be off besides, for numbers near 0."""
    executor: ExecutorOptions = ExecutorOptions()
    """Where programs run, and how isolated."""

    def named_code(self) -> Iterator[str]:
        """What these options have run outside a sandbox: the interpreter is asked there what it is."""
        if self.executor.kind == "local" and self.executor.interpreter is not None:
            yield self.executor.interpreter

    def limits(self) -> Limits:
        """The limits of one test."""
        return Limits(
            wall_s=max(self.timeout_s * _WALL_PER_CPU_SECOND, self.timeout_s + _WALL_BEYOND_CPU_S),
            cpu_s=self.timeout_s,
            memory_mib=self.memory_mib,
            processes=self.processes,
            output_kib=self.output_kib,
            file_mib=self.file_mib,
        )
