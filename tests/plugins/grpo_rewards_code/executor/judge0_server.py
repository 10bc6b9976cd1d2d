"""A server that speaks Judge0's documented protocol, with a queue, limits, tokens, refusals and hiccups.

It runs what it is sent with this interpreter and no isolation, so only tests may talk to it.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PYTHON = 71
_MOST_IN_A_BATCH = 20
_STATUS = {"queue": 1, "processing": 2, "accepted": 3, "time": 5, "sigsegv": 7, "sigxfsz": 8, "sigabrt": 10, "nzec": 11}
_BY_SIGNAL = {11: _STATUS["sigsegv"], 25: _STATUS["sigxfsz"], 6: _STATUS["sigabrt"]}


@dataclass
class Hiccup:
    """An answer that comes instead of the real one."""

    status: int
    body: str = "{}"
    headers: dict[str, str] = field(default_factory=dict)
    sleep_s: float = 0.0
    """Before the answer."""
    drop: bool = False
    """Whether the connection is closed without one."""


@dataclass
class Judge0Server:
    """A running server and what it saw."""

    url: str = ""
    token: str | None = None
    """What X-Auth-Token must be."""
    hiccups: list[Hiccup] = field(default_factory=list)
    polls_until_done: int = 1
    """How many times a submission is asked for before it is finished."""
    override: dict[str, Any] = field(default_factory=dict)
    """Fields of every finished submission, instead of the true ones."""
    forget: bool = False
    """Whether submissions are lost."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    submitted: list[dict[str, Any]] = field(default_factory=list)
    _asked: dict[str, int] = field(default_factory=dict)
    _done: dict[str, dict[str, Any]] = field(default_factory=dict)

    def submit(self, submission: dict[str, Any]) -> dict[str, Any]:
        """A token, or what is wrong."""
        if submission.get("language_id") != PYTHON:
            return {"language_id": [f"language with id {submission.get('language_id')} doesn't exist"]}
        if submission["memory_limit"] > 2_000_000:
            return {"memory_limit": ["must be less than or equal to 2000000"]}
        token = f"token-{len(self.submitted)}"
        self.submitted.append(submission)
        return {"token": token}

    def look(self, token: str) -> dict[str, Any] | None:
        """A submission as it is now."""
        if self.forget:
            return None
        self._asked[token] = self._asked.get(token, 0) + 1
        if self._asked[token] < self.polls_until_done:
            return {"token": token, "status_id": _STATUS["queue" if self._asked[token] == 1 else "processing"]}
        if token not in self._done:
            self._done[token] = {"token": token, **_execute(self.submitted[int(token[6:])]), **self.override}
        return self._done[token]


@contextmanager
def serve_judge0(**settings: Any) -> Iterator[Judge0Server]:
    """A server on a free port of this machine, until the end of the block."""
    state = Judge0Server(**settings)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self._interrupted("POST"):
                return
            submissions = body["submissions"]
            if len(submissions) > _MOST_IN_A_BATCH:
                text = f"number of submissions in a batch should be less than or equal to {_MOST_IN_A_BATCH}"
                self._answer(400, {"error": text})
                return
            answers = [state.submit(each) for each in submissions]
            self._answer(201 if any("token" in each for each in answers) else 422, answers)

        def do_GET(self) -> None:
            if self._interrupted("GET"):
                query = parse_qs(urlsplit(self.path).query)
                assert query["base64_encoded"] == ["true"]
                self._answer(200, {"submissions": [state.look(token) for token in query["tokens"][0].split(",")]})

        def _interrupted(self, method: str) -> bool:
            """Whether the request goes on to be answered."""
            state.requests.append((method, self.path))
            if state.token is not None and self.headers.get("X-Auth-Token") != state.token:
                self._answer(401, {})
                return False
            if not state.hiccups:
                return True
            hiccup = state.hiccups.pop(0)
            time.sleep(hiccup.sleep_s)
            if hiccup.drop:
                self.close_connection = True
                return False
            self._send(hiccup.status, hiccup.body.encode(), hiccup.headers)
            return False

        def _answer(self, status: int, body: object) -> None:
            self._send(status, json.dumps(body).encode(), {})

        def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


def _execute(submission: dict[str, Any]) -> dict[str, Any]:
    source = base64.b64decode(submission["source_code"])
    started = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", source],
            input=base64.b64decode(submission["stdin"]),
            capture_output=True,
            timeout=submission["wall_time_limit"],
        )
    except subprocess.TimeoutExpired:
        return {"status_id": _STATUS["time"], "stdout": None, "message": None, "wall_time": "1.0"}
    signal_number = -done.returncode if done.returncode < 0 else None
    status = _BY_SIGNAL.get(signal_number or 0, _STATUS["nzec"] if done.returncode else _STATUS["accepted"])
    return {
        "status_id": status,
        "stdout": base64.encodebytes(done.stdout).decode() or None,
        "stderr": base64.encodebytes(done.stderr).decode() or None,
        "compile_output": None,
        "message": None,
        "exit_code": None if signal_number else done.returncode,
        "exit_signal": signal_number,
        "wall_time": str(time.monotonic() - started),
    }
