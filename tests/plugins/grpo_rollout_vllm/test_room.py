"""More engine processes than devices are refused before vLLM starts any."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from grpo_core.backends import ModelSettings
from grpo_core.errors import UsageError
from grpo_rollout_vllm import room, serve
from grpo_rollout_vllm.room import engine_processes, require_devices


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], 1),
        (["--dtype", "float32"], 1),
        (["--tensor-parallel-size", "2"], 2),
        (["-tp", "2", "-dp=3", "--pipeline_parallel_size=4"], 24),
        (["-dp", "16", "-dpl", "8"], 8),
        (["-tp", "2", "-tp", "4"], 4),
        (["-tp", "two"], 1),
        (["-tp"], 1),
        (["-tp", "64", "--nnodes", "8"], 1),
        (["-dp", "64", "--data-parallel-backend=ray"], 1),
    ],
)
def test_the_options_say_how_many_processes_have_a_device(arguments: Sequence[str], expected: int) -> None:
    assert engine_processes(arguments) == expected


@pytest.mark.parametrize(("on_cpu", "what"), [(True, "2 cores"), (False, "2 GPUs")])
def test_more_than_there_are_devices_is_an_error(on_cpu: bool, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_cores" if on_cpu else "_gpus", lambda: 2)
    require_devices(["-dp", "2"], on_cpu=on_cpu)
    with pytest.raises(UsageError, match=f"ask for 1000 engine processes, and this machine has {what}"):
        require_devices(["--data-parallel-size", "1000"], on_cpu=on_cpu)


def test_the_command_refuses_them_before_it_prints_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve.importlib.util, "find_spec", lambda _: True)
    monkeypatch.setattr(serve, "is_cpu_build", lambda: True)
    with pytest.raises(UsageError, match="ask for 100000 engine processes"):
        serve.serve(ModelSettings(path="m"), host="127.0.0.1", port=8000, arguments=["-tp", "100000"])
    assert capsys.readouterr().out == ""
