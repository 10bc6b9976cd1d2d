"""Who a process is, from what its starter puts into the environment."""

from __future__ import annotations

import pytest

from grpo_core.errors import UsageError
from grpo_core.ranks.place import Place, find_place

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "10.0.0.7",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
}
SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_NTASKS": "6",
    "SLURM_LOCALID": "1",
    "SLURM_NNODES": "3",
    "SLURM_JOB_ID": "123456",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3)",
    "SLURM_STEP_NODELIST": "gpu[07-08,11]",
}


def test_a_process_that_nobody_placed_is_alone() -> None:
    assert find_place({"PATH": "/bin"}) is None


def test_torchrun_says_everything() -> None:
    assert find_place(TORCHRUN) == Place(
        rank=3,
        world_size=4,
        local_rank=1,
        local_world_size=2,
        master_address="10.0.0.7",
        master_port=29500,
        agent_keeps_store=True,
    )


def test_a_starter_without_an_agent_leaves_the_store_to_rank_0() -> None:
    place = find_place({name: text for name, text in TORCHRUN.items() if name != "TORCHELASTIC_USE_AGENT_STORE"})
    assert place is not None
    assert not place.agent_keeps_store


def test_a_starter_may_call_the_processes_of_a_machine_local_size() -> None:
    named = {name: text for name, text in TORCHRUN.items() if name != "LOCAL_WORLD_SIZE"}
    place = find_place({**named, "LOCAL_SIZE": "2"})
    assert place is not None
    assert place.local_world_size == 2
    of_one_machine = find_place(named)
    assert of_one_machine is not None
    assert of_one_machine.local_world_size == 4


def test_srun_names_the_first_machine_and_the_job_gives_the_port() -> None:
    assert find_place(SRUN) == Place(
        rank=5,
        world_size=6,
        local_rank=1,
        local_world_size=2,
        master_address="gpu07",
        master_port=20_000 + 123456 % 20_000,
        agent_keeps_store=False,
    )


@pytest.mark.parametrize(
    ("nodes", "first"), [("node1", "node1"), ("a,b", "a"), ("n[3-5]", "n3"), ("x-[001,7],y", "x-001")]
)
def test_the_first_machine_of_every_kind_of_list(nodes: str, first: str) -> None:
    place = find_place(SRUN | {"SLURM_STEP_NODELIST": nodes})
    assert place is not None
    assert place.master_address == first


def test_the_users_address_and_port_win_over_srun() -> None:
    place = find_place(SRUN | {"MASTER_ADDR": "10.1.1.1", "MASTER_PORT": "4000"})
    assert place is not None
    assert (place.master_address, place.master_port) == ("10.1.1.1", 4000)


def test_torchrun_inside_a_slurm_job_wins() -> None:
    place = find_place(SRUN | TORCHRUN)
    assert place is not None
    assert place.rank == 3


@pytest.mark.parametrize("environment", [TORCHRUN | {"WORLD_SIZE": "1", "RANK": "0"}, SRUN | {"SLURM_NTASKS": "1"}])
def test_one_process_of_one_is_alone(environment: dict[str, str]) -> None:
    assert find_place(environment) is None


def test_half_a_place_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match=r"MASTER_PORT is not set(.|\n)*torchrun or srun"):
        find_place({name: text for name, text in TORCHRUN.items() if name != "MASTER_PORT"})


def test_a_rank_that_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match="RANK is 'first', not a whole number"):
        find_place(TORCHRUN | {"RANK": "first"})


def test_a_list_of_machines_that_names_none_is_refused() -> None:
    with pytest.raises(UsageError, match="names no machine"):
        find_place(SRUN | {"SLURM_STEP_NODELIST": ",b"})
