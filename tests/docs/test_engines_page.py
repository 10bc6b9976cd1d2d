"""docs/engines.md: its tables have every option, and the backend that it shows runs."""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from grpo_core.api import RolloutError
from grpo_core.loop.checked import generate
from grpo_rollout_vllm.options import VllmRolloutOptions
from tests.core.rollout.make import request
from tests.plugins.grpo_rollout_vllm.making import context
from tests.tiny_models import make_model_folder

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n# grpo_acme/(\w+)\.py\n(.*?)```", PAGE, flags=re.DOTALL)


def test_every_option_of_vllm_has_a_line() -> None:
    listed = set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE))
    assert set(VllmRolloutOptions.model_fields) <= listed


def test_the_backend_of_the_page_has_fewer_than_80_lines() -> None:
    assert [name for name, _ in BLOCKS] == ["plugin", "options", "rollout"]
    assert sum(len(block.strip().splitlines()) for _, block in BLOCKS) < 80


class Acme(BaseHTTPRequestHandler):
    """A server that divides its logits by the temperature that it is sent."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body.get("greedy") or 1 / body["temperature"]
        choices = [{"ids": [65, 66], "logprobs": [-0.1, -0.2], "ended": False} for _ in range(body["n"])]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": choices}).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_the_backend_of_the_page_answers_and_refuses_other_weights(tmp_path: Path) -> None:
    modules = {name: ModuleType(name) for name, _ in BLOCKS}
    for name, source in BLOCKS:
        exec(compile(source, name, "exec"), modules[name].__dict__)  # noqa: S102  it is our own page
    (spec,) = modules["plugin"].grpo_rollout_backends()
    assert spec.name == "acme"
    folder = make_model_folder(tmp_path / "model")
    with HTTPServer(("127.0.0.1", 0), Acme) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        backend = modules["rollout"].make(modules["options"].AcmeOptions(url=url), context(folder, tmp_path))
        backend.load_weights(iter(()), 0)
        (group,) = generate(backend, [request(n=3)])
        list(generate(backend, [request(temperature=0.0)]))
        server.shutdown()
    assert len(group.completions) == 3
    assert group.completions[0].sampling_logprobs == (-0.1, -0.2)
    with pytest.raises(RolloutError, match="keeps its weights"):
        backend.load_weights(iter(()), 1)
    with pytest.raises(RolloutError, match="knows no filters"):
        list(generate(backend, [request(top_p=0.5)]))
    with pytest.raises(RolloutError, match="does not answer"):
        list(generate(backend, [request()]))
    assert "grpo_acme" not in sys.modules
