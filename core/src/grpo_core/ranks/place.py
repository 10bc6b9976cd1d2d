"""How many processes a run has, and which of them this one is. That is what its starter says: grpoctl, torchrun and
deepspeed set RANK and its kin, srun sets SLURM_PROCID and its kin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from grpo_core.errors import UsageError

__all__ = ["Place", "Processes", "find_place"]

_FIRST_PORT = 20_000
_PORTS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One process among those that train together."""

    rank: int
    """From 0, over all machines."""
    world_size: int
    """How many there are."""
    local_rank: int
    """From 0, on this machine."""
    local_world_size: int
    """How many there are on this machine."""
    master_address: str
    """Where rank 0 is."""
    master_port: int
    """Of the store that all connect to."""
    agent_keeps_store: bool
    """The starter keeps the store; else rank 0 does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """How many processes a run has, and where this machine stands among those it runs on."""

    per_node: int = 1
    """On this machine."""
    nodes: int = 1
    """Machines."""
    node_rank: int = 0
    """This machine's number, from 0. Number 0 resolves the run and keeps the store."""
    endpoint: str | None = None
    """`host:port` of machine 0, where all machines meet."""
    oversubscribe: bool = False
    """More than fit here are meant."""

    @property
    def count(self) -> int:
        """On all machines."""
        return self.per_node * self.nodes

    @property
    def several(self) -> bool:
        """Whether there is more than one process."""
        return self.count > 1

    def meeting_point(self) -> tuple[str, int]:
        """Host and port of `endpoint`; raises `UsageError` where it names none."""
        address, _, port = (self.endpoint or "").rpartition(":")
        if not address or not port.isdecimal():
            raise UsageError(
                f"--nnodes {self.nodes} needs the place where the machines meet, and --rdzv-endpoint is "
                f"{self.endpoint!r}",
                hint="give host:port, an address of machine 0 that the others reach and a port that is free there",
            )
        return address, int(port)


def find_place(environ: Mapping[str, str]) -> Place | None:
    """The place that the environment names; None: this process trains alone. Raises `UsageError` for half of one."""
    if "RANK" in environ and "WORLD_SIZE" in environ:
        place = _of_torchrun(environ)
    elif "SLURM_PROCID" in environ and "SLURM_NTASKS" in environ:
        place = _of_srun(environ)
    else:
        return None
    return place if place.world_size > 1 else None


def _of_torchrun(environ: Mapping[str, str]) -> Place:
    rank, world_size = _number(environ, "RANK"), _number(environ, "WORLD_SIZE")
    return Place(
        rank=rank,
        world_size=world_size,
        local_rank=_number(environ, "LOCAL_RANK"),
        # Starters that do not set the first name set the second.
        local_world_size=_number(
            environ, "LOCAL_WORLD_SIZE", default=_number(environ, "LOCAL_SIZE", default=world_size)
        ),
        master_address=_text(environ, "MASTER_ADDR"),
        master_port=_number(environ, "MASTER_PORT"),
        agent_keeps_store=environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
    )


def _of_srun(environ: Mapping[str, str]) -> Place:
    world_size = _number(environ, "SLURM_NTASKS")
    nodes = _number(environ, "SLURM_NNODES", default=1)
    job = _number(environ, "SLURM_JOB_ID", default=0)
    return Place(
        rank=_number(environ, "SLURM_PROCID"),
        world_size=world_size,
        local_rank=_number(environ, "SLURM_LOCALID"),
        local_world_size=_tasks_per_node(environ, default=-(-world_size // nodes)),
        master_address=environ.get("MASTER_ADDR") or _first_node(environ),
        master_port=_number(environ, "MASTER_PORT", default=_FIRST_PORT + job % _PORTS),
        agent_keeps_store=False,
    )


def _tasks_per_node(environ: Mapping[str, str], *, default: int) -> int:
    """SLURM_STEP_TASKS_PER_NODE is `4(x2),3`: 4 on each of two machines and 3 on another; the largest is taken."""
    counts = re.findall(r"(\d+)(?:\(x\d+\))?", environ.get("SLURM_STEP_TASKS_PER_NODE", ""))
    return max(map(int, counts), default=default)


def _first_node(environ: Mapping[str, str]) -> str:
    """SLURM_STEP_NODELIST is `a[01-04,07],b`: the first is a01, where rank 0 is."""
    nodes = environ.get("SLURM_STEP_NODELIST") or _text(environ, "SLURM_JOB_NODELIST")
    found = re.match(r"([^\[,]+)(?:\[(\d+))?", nodes)
    if found is None:
        raise UsageError(f"SLURM_JOB_NODELIST is {nodes!r}, which names no machine", hint="set MASTER_ADDR")
    return found.group(1) + (found.group(2) or "")


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name)
    if not value:
        raise UsageError(
            f"{name} is not set, and this process is to be one of several (RANK or SLURM_PROCID is set)",
            hint="start the processes with `grpoctl train --nproc-per-node N`, torchrun or srun, which set it",
        )
    return value


def _number(environ: Mapping[str, str], name: str, *, default: int | None = None) -> int:
    if default is not None and name not in environ:
        return default
    text = _text(environ, name)
    if not text.isdecimal():
        raise UsageError(f"{name} is {text!r}, not a whole number from 0")
    return int(text)
