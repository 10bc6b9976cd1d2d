"""A real vLLM server, started by the real command, for tests marked `engines`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.tiny_models import make_model_folder

START_LIMIT_S = 420.0
SHAPE: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}
"""vLLM's attention on a CPU knows no smaller heads."""
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def make_served_model(folder: Path, seed: int = 0, **config: Any) -> Path:
    """A tiny model that vLLM can serve, its head tied to its embedding."""
    return make_model_folder(folder, family="qwen2", seed=seed, **SHAPE, **config)


class RealServer:
    """`grpoctl rollout` in a process of its own; a context manager that leaves nothing behind."""

    def __init__(self, model: Path, log: Path, *arguments: str, **environment: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "grpo_core", "rollout", "--model", str(model), "--port", str(self.port)]
        self._command += ["--dtype", "float32", "--max-model-len", "256", *arguments]
        self._environment = {**os.environ, **ENVIRONMENT, **environment}
        self._log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to start it; `wait` waits for it to be ready."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    def wait(self) -> RealServer:
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until:
            assert self.process is not None
            assert self.process.poll() is None, self._log.read_text(encoding="utf-8")[-3000:]
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=5):
                return self
            time.sleep(0.3)
        raise AssertionError(f"not ready\n{self._log.read_text(encoding='utf-8')[-3000:]}")

    def kill(self) -> None:
        """kill -9 of the server with its engine and workers."""
        assert self.process is not None
        for child in _children(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        self.process.wait(60)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=30) as response:
            text = response.read().decode()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def label(self) -> str:
        return str(self.get("/weight_info")["weight_version"])

    def running(self) -> int:
        """How many completions it is generating."""
        lines = str(self.get("/metrics")).splitlines()
        return int(sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running{")))

    def __enter__(self) -> RealServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    return [int(child) for child in text.split()]
