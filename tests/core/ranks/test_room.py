"""More processes than fit are refused before any is started, and the message says how many fit."""

from __future__ import annotations

import pytest
import torch

from grpo_core.errors import UsageError
from grpo_core.ranks import room
from grpo_core.ranks.place import Processes
from grpo_core.ranks.room import PROCESS_BYTES, gpu_of, memory_warning, require_devices, require_memory

GIB = 2**30


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 4 cores, 8 GiB and no GPU."""
    _gpus(monkeypatch, 0)
    monkeypatch.setattr(room, "available_cores", lambda: 4)
    monkeypatch.setattr(room, "available_memory", lambda: 8 * GIB)


def _gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


@pytest.mark.usefixtures("machine")
def test_more_processes_than_cores_are_refused_unless_they_are_insisted_on() -> None:
    require_devices(Processes(per_node=4))
    with pytest.raises(UsageError) as caught:
        require_devices(Processes(per_node=190))
    assert caught.value.message.startswith("--nproc-per-node is 190, and this machine has 4 cores for its processes")
    assert caught.value.hint == "start at most 4 here, or insist: --oversubscribe"
    require_devices(Processes(per_node=190, oversubscribe=True))


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("oversubscribe", [False, True])
def test_more_processes_than_gpus_are_refused_in_any_case(monkeypatch: pytest.MonkeyPatch, oversubscribe: bool) -> None:
    _gpus(monkeypatch, 8)
    require_devices(Processes(per_node=8))
    with pytest.raises(UsageError) as caught:
        require_devices(Processes(per_node=9, oversubscribe=oversubscribe))
    message = "there are 8 GPUs on this machine and --nproc-per-node is 9: two cannot share one"
    assert caught.value.message == message
    assert "start at most 8 processes here, or hide the GPUs" in str(caught.value.hint)


@pytest.mark.usefixtures("machine")
def test_on_each_of_several_machines_only_its_own_processes_count() -> None:
    require_devices(Processes(per_node=4, nodes=16, node_rank=3))
    with pytest.raises(UsageError, match="--nproc-per-node is 5"):
        require_devices(Processes(per_node=5, nodes=16, node_rank=3))


@pytest.mark.usefixtures("machine")
def test_processes_that_do_not_fit_into_memory_are_refused_with_the_number_that_does() -> None:
    require_memory(Processes(per_node=3), 2 * GIB)
    with pytest.raises(UsageError) as caught:
        require_memory(Processes(per_node=4), 2 * GIB)
    assert caught.value.message == (
        "--nproc-per-node is 4, and so many processes of about 2.3 GiB each need 9.2 GiB of memory: 8.0 GiB are left "
        "here"
    )
    assert caught.value.hint == "start at most 3 here, or insist: --oversubscribe"
    with pytest.raises(UsageError, match="train a smaller model, or on a larger machine, or insist"):
        require_memory(Processes(per_node=2), 20 * GIB)
    require_memory(Processes(per_node=4, oversubscribe=True), 2 * GIB)


@pytest.mark.usefixtures("machine")
def test_processes_need_memory_before_there_is_a_model_in_them() -> None:
    many = 8 * GIB // PROCESS_BYTES + 1
    with pytest.raises(UsageError, match=f"start at most {many - 1} here"):
        require_memory(Processes(per_node=many), 0)


@pytest.mark.usefixtures("machine")
def test_main_memory_is_no_limit_on_gpus_or_where_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_memory", lambda: None)
    require_memory(Processes(per_node=4), 100 * GIB)
    monkeypatch.setattr(room, "available_memory", lambda: GIB)
    _gpus(monkeypatch, 4)
    require_memory(Processes(per_node=4), 100 * GIB)


def test_a_process_of_another_starter_that_has_no_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _gpus(monkeypatch, 1)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu_of(0) == 0
    with pytest.raises(UsageError, match="there is 1 GPU on this machine and no one is left for process 2 of it"):
        gpu_of(1)
    _gpus(monkeypatch, 0)
    assert gpu_of(1) is None


def test_more_memory_than_there_is_is_a_warning_and_absurdly_more_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo_core.ranks.room.available_memory", lambda: 2 << 30)
    assert memory_warning(2 << 30, on_cpu=True) is None
    said = str(memory_warning(3 << 30, on_cpu=True))
    assert said.startswith("a process needs about 3.0 GiB of memory, and has 2.0 GiB left here; lower run.prompts_per")
    with pytest.raises(
        UsageError, match=r"needs about 75776\.0 GiB of memory, and has 2\.0 GiB left here, not a 100th"
    ):
        memory_warning(74 << 40, on_cpu=True)
    monkeypatch.setattr("grpo_core.ranks.room.available_memory", lambda: None)
    assert memory_warning(74 << 40, on_cpu=True) is None
