"""`grpoctl rollout` of this plugin: the command it makes, and how the server's life ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grpo_core.api import PluginError, RolloutError
from grpo_core.backends import ModelSettings
from grpo_rollout_vllm import launch, serve
from grpo_rollout_vllm.launch import server_command, server_environment
from tests.processes import below, wait_until_gone

MODEL = ModelSettings(path="m")
FAKE = """
import signal, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("child", child.pid, flush=True)
class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy).serve_forever()
"""


def test_the_command_has_what_weight_transfer_needs_and_the_users_own_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "is_cpu_build", lambda: False)
    command = server_command(MODEL, host="0.0.0.0", port=8001, arguments=["--dtype", "float32"])
    assert command[:4] == [sys.executable, "-P", "-m", "vllm.entrypoints.openai.api_server"]
    assert command[4:10] == ["--model", "m", "--host", "0.0.0.0", "--port", "8001"]
    assert {"--enable-scale-out", "--disable-uvicorn-access-log"} <= set(command)
    assert command[command.index("--worker-extension-cls") + 1] == "grpo_rollout_vllm.worker.Extension"
    assert command[-2:] == ["--dtype", "float32"]
    assert "--enforce-eager" not in command
    assert server_environment([], {}) == {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}


def test_all_that_a_recipe_says_of_the_model_reaches_the_engine() -> None:
    model = ModelSettings(path="org/name", revision="v2", tokenizer="org/tokenizer", trust_remote_code=True)
    command = server_command(model, host="h", port=1, arguments=[])
    said = ["--model", "org/name", "--tokenizer", "org/tokenizer", "--revision", "v2", "--trust-remote-code"]
    assert command[4:11] == said


def test_on_a_cpu_it_compiles_nothing_and_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "is_cpu_build", lambda: True)
    command = server_command(MODEL, host="h", port=1, arguments=[])
    assert {"--enforce-eager", "--no-enable-chunked-prefill"} <= set(command)
    assert server_environment([], {"TORCHDYNAMO_DISABLE": "0"})["TORCHDYNAMO_DISABLE"] == "0"


def test_on_a_cpu_the_cache_has_a_size_of_its_own_unless_the_user_gives_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM would take 92 % of the memory, and refuse to start where that is not free."""
    monkeypatch.setattr(launch, "is_cpu_build", lambda: True)
    assert server_environment([], {})["VLLM_CPU_KVCACHE_SPACE"] == "4"
    assert server_environment([], {"VLLM_CPU_KVCACHE_SPACE": "1"})["VLLM_CPU_KVCACHE_SPACE"] == "1"
    for arguments in (["--gpu-memory-utilization", "0.5"], ["--kv-cache-memory-bytes=1G"]):
        assert "VLLM_CPU_KVCACHE_SPACE" not in server_environment(arguments, {})


def test_without_vllm_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(PluginError, match="vLLM is not installed here\n  pip install vllm"):
        serve.serve(MODEL, host="127.0.0.1", port=8000, arguments=[])


def started(tmp_path: Path, port: int, fake: str) -> subprocess.Popen[str]:
    """`serve` in a process of its own, with a small server in place of vLLM's."""
    (tmp_path / "fake.py").write_text(fake, encoding="utf-8")
    source = (
        "import sys\n"
        "from grpo_core.backends import ModelSettings\n"
        "from grpo_rollout_vllm import serve\n"
        f"serve.server_command = lambda *_, **__: [sys.executable, {str(tmp_path / 'fake.py')!r}, '{port}']\n"
        "serve.importlib.util.find_spec = lambda _: True\n"
        f"raise SystemExit(serve.serve(ModelSettings(path='m'), host='127.0.0.1', port={port}, arguments=[]))\n"
    )
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_says_when_the_server_is_ready_and_leaves_no_process_behind(
    number: int, tmp_path: Path, unused_port: int
) -> None:
    with started(tmp_path, unused_port, FAKE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        child = next(int(line.split()[1]) for line in lines if line.startswith("child"))
        assert any(line.startswith("ready after") for line in lines)
        assert any(f"rollout.options.urls=[http://127.0.0.1:{unused_port}]" in line for line in lines)
        process.send_signal(number)
        assert process.wait(120) == 0
    until = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and _is_alive(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _is_alive(child)


def family_of(process: subprocess.Popen[str]) -> list[int]:
    """What lives below a command whose server is ready."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    assert any(line.startswith("ready after") for line in lines)
    return list(below(process.pid))


def test_a_command_that_is_killed_leaves_no_process_behind(tmp_path: Path, unused_port: int) -> None:
    """Its guard ends what the front process leaves when the kernel ends that one."""
    with started(tmp_path, unused_port, FAKE) as process:
        family = family_of(process)
        assert len(family) == 3, "the guard, the front process, and what that started"
        process.kill()
    assert wait_until_gone(family) == []


def test_a_command_that_is_killed_while_the_server_starts_leaves_no_process_behind(
    tmp_path: Path, unused_port: int
) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_DFL); time.sleep(600)"
    with started(tmp_path, unused_port, deaf) as process:
        until = time.monotonic() + 60
        while len(below(process.pid)) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        family = list(below(process.pid))
        process.kill()
    assert wait_until_gone(family) == []


@pytest.mark.slow
def test_a_server_that_does_not_hear_is_killed_after_its_grace(tmp_path: Path, unused_port: int) -> None:
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{FAKE}"
    with started(tmp_path, unused_port, deaf) as process:
        family = family_of(process)
        process.kill()
    assert wait_until_gone(family, 40.0) == []


def test_a_guard_that_is_killed_is_not_missed(tmp_path: Path, unused_port: int) -> None:
    with started(tmp_path, unused_port, FAKE) as process:
        family = family_of(process)
        guard = next(pid for pid in family if b"grpo_rollout_vllm.guard" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(guard, signal.SIGKILL)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert wait_until_gone(family) == []


def test_a_server_that_ends_before_it_is_ready_is_an_error(tmp_path: Path, unused_port: int) -> None:
    with started(tmp_path, unused_port, "raise SystemExit(3)") as process:
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "error: the server ended with 3 before it was ready" in stderr


def test_a_server_that_dies_while_it_serves_is_an_error(tmp_path: Path, unused_port: int) -> None:
    with started(tmp_path, unused_port, FAKE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        assert any(line.startswith("ready after") for line in lines)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
        front = next(pid for pid in children if b"fake.py" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.killpg(int(front), signal.SIGKILL)
        assert process.wait(120) == 4
        assert process.stderr is not None
        assert "error: the server ended by signal 9 while it served" in process.stderr.read()


def test_a_port_that_is_taken_is_said_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.importlib.util, "find_spec", lambda _: True)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RolloutError) as raised:
            serve.serve(MODEL, host="127.0.0.1", port=port, arguments=[])
    assert f"no server can listen at 127.0.0.1, port {port}: Address already in use" in raised.value.message
    assert "Choose another --port" in str(raised.value.hint)


def test_a_server_at_all_addresses_is_reached_by_the_machines_name() -> None:
    assert serve._public_name("0.0.0.0") == socket.gethostname()
    assert serve._public_name("10.0.0.7") == "10.0.0.7"
    assert serve._url("::1", 8000) == "http://[::1]:8000"


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{pid}")
