"""A small server that speaks vLLM's protocol, for faults that a real one takes minutes to have.

It takes weights over by the plugin's own code, keeps their label, and answers prompts with tokens that follow from the
seed. It can die with every connection, come back on the same port as a new process would, and hang.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from grpo_rollout_vllm.broadcast import Broadcast, TensorFact
from grpo_rollout_vllm.fingerprint import Fingerprint
from grpo_rollout_vllm.spool import passing, read_tensors

END = 258
MODEL: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 272,
    "tie_word_embeddings": True,
}
Hook = Callable[["StandIn"], None]


class StandIn:
    """A server on a free port of the loopback address; a context manager."""

    def __init__(self, **about: Any) -> None:
        self.about: dict[str, Any] = {
            "protocol": 2,
            "vllm": "0.32.0",
            "device": "cpu",
            "cuts_prompts": False,
            "dtype": "float32",
            "logprobs": "raw_logprobs",
            "context_tokens": 256,
            "sequences": 128,
            "model": MODEL,
            **about,
        }
        self.before: dict[str, Hook] = {}
        """Path or method -> what happens, once, before it is answered."""
        self.asked: list[str] = []
        """Paths and methods, in order."""
        self.prompts: list[dict[str, Any]] = []
        """Bodies of prompts that were answered."""
        self.finish_reason = "length"
        self.logprob = -0.5
        self.vocab_size = MODEL["vocab_size"]
        self.takes_adapters = True
        self.adapter: dict[str, torch.Tensor] = {}
        self.missing: set[str] = set()
        """Paths and methods that it does not know."""
        self._hanging = threading.Event()
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._http: ThreadingHTTPServer | None = None
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Come up as a new process does: with the weights of its own files."""
        self.label, self.paused, self.weights = "default", False, dict[str, torch.Tensor]()
        self._hanging.clear()
        self._http = _Http(("127.0.0.1", self._port), _handler(self))
        self._port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def die(self) -> None:
        """End at once, with every connection."""
        assert self._http is not None
        self._http.shutdown()
        self._http.server_close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._connections.clear()
        self._http = None

    def hang(self) -> None:
        """Take requests and answer none."""
        self._hanging.set()

    def wake(self) -> None:
        """Go on."""
        self._hanging.clear()

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.wake()
        if self._http is not None:
            self.die()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and content."""
        name = str(body.get("method", path)) if path == "/collective_rpc" else path.partition("?")[0]
        with self._lock:
            self.asked.append(name)
            hook = self.before.pop(name, None)
        if hook is not None:
            hook(self)
        while self._hanging.is_set():
            time.sleep(0.01)
        if path in self.missing:
            return 404, {"detail": "Not Found"}
        if name in self.missing:
            return _failed(f"'CPUWorker' object has no attribute '{name}'")
        if path == "/collective_rpc":
            return self._call(name, body["args"])
        if name == "/inference/v1/generate":
            return self._generate(body)
        if name == "/v1/load_lora_adapter":
            if not self.takes_adapters:
                return 404, {"detail": "Not Found"}
            self.adapter = load_file(Path(body["lora_path"]) / "adapter_model.safetensors")
            return 200, {}
        if name == "/update_weight_version":
            self.label = body["new_version"]
        if name in ("/pause", "/resume"):
            self.paused = name == "/pause"
        return 200, {
            "/get_world_size": {"world_size": 1},
            "/version": {"version": self.about["vllm"]},
            "/weight_info": {"weight_version": self.label},
            "/reset_prefix_cache": {"success": True},
        }.get(name, {})

    def _call(self, method: str, arguments: list[Any]) -> tuple[int, Any]:
        if method == "grpo_about":
            return 200, {"results": [self.about]}
        if method == "grpo_sees":
            path, content = arguments
            return 200, {"results": [{"sees": Path(path).read_text(encoding="utf-8") == content}]}
        if method == "grpo_check_adapter":
            folder, expected = arguments
            arrived = Fingerprint()
            for _ in passing(load_file(Path(folder) / "adapter_model.safetensors").items(), arrived):
                pass
            return 200, {"results": [{"same": arrived.text == expected}]}
        if method == "grpo_load":
            folder, fingerprint = arguments
            return self._take_over(read_tensors(Path(folder)), fingerprint)
        host, port, secret, members, _, facts, fingerprint, limit_s = arguments
        device = torch.device("cpu")
        with Broadcast.join(host, port, secret, rank=1, members=members, device=device, limit_s=limit_s) as group:
            return self._take_over(group.receive([TensorFact.read(fact) for fact in facts]), fingerprint)

    def _take_over(self, stream: Any, expected: str) -> tuple[int, Any]:
        arrived = Fingerprint()
        self.weights = {name: tensor.clone() for name, tensor in passing(stream, arrived)}
        if arrived.text != expected:
            return _failed(f"grpo: {arrived.tensors} tensors arrived, with the fingerprint {arrived.text}")
        return 200, {"results": [{"fingerprint": arrived.text}]}

    def _generate(self, body: dict[str, Any]) -> tuple[int, Any]:
        label, params = self.label, body["sampling_params"]
        if max(body["token_ids"]) >= self.vocab_size:
            return 400, {"error": {"message": "Token id is out of vocabulary"}}
        self.prompts.append(body)
        return 200, {"choices": [self._choice(index, label, params) for index in range(params["n"])]}

    def _choice(self, index: int, label: str, params: dict[str, Any]) -> dict[str, Any]:
        first = (params["seed"] + index) % 200
        tokens = [(first + place) % 250 for place in range(params["max_tokens"])]
        return {
            "index": index,
            "finish_reason": self.finish_reason,
            "token_ids": tokens,
            "weight_versions": [{"version": label, "start": 0, "end": len(tokens)}],
            "logprobs": {"content": [{"token_id": token, "logprob": self.logprob} for token in tokens]},
        }


def _failed(text: str) -> tuple[int, Any]:
    """As vLLM wraps what a worker raises."""
    message = f"Call to collective_rpc method failed: Worker failed with error '{text}', please check the stack trace"
    return 500, {"error": {"message": message, "code": 500}}


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is nothing to print."""


def _handler(owner: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def setup(self) -> None:
            super().setup()
            owner.opened(self.connection)

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: dict[str, Any]) -> None:
            status, content = owner.answer(self.path, body)
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    return Handler
