"""Programs at a Judge0 service, over its HTTP API: submissions in batches, asked for until they have ended.

The service isolates programs and enforces the limits; what it may be asked for is its configuration's to say, and a
refusal names the limit. See https://ce.judge0.com for the API.
"""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from grpo_rewards_code.executor.options import Judge0Options
from grpo_rewards_code.executor.outcome import limit_result, read_result, stdin_of
from grpo_rewards_code.executor.remote import (
    NO_SCRIPTS,
    BusyError,
    Slots,
    new_marker,
    patiently,
    script_of,
    split_output,
)
from grpo_rewards_code.executor.types import ExecutorError, Job, Limits, Run, RunResult, ScriptJob, ScriptResult

__all__ = ["Judge0Executor"]

_IN_QUEUE, _PROCESSING, _ACCEPTED, _TOO_LONG, _NOT_COMPILED = 1, 2, 3, 5, 6
_FILE_TOO_LARGE, _INTERNAL_ERROR, _NO_EXECUTABLE = 8, 13, 14
_FIELDS = "token,status_id,stdout,stderr,compile_output,message,exit_code,exit_signal,wall_time"
_BUSY = (429, 500, 502, 503, 504)
_SHOWN = 300
_LONGEST_WALL_S, _WALL_PER_CPU_SECOND = 20.0, 1.5
"""A service refuses more by the clock than its MAX_WALL_TIME_LIMIT, which is 20 unless its owner has set another."""

Submission = Mapping[str, Any]


class Judge0Executor:
    """Runs jobs at a Judge0 service."""

    def __init__(self, options: Judge0Options, url: str, workers: int) -> None:
        """Raises `ExecutorError` when a header's environment variable is not set."""
        self._options = options
        self._url = url.rstrip("/")
        self._slots = Slots(workers)
        self._headers = {header: _secret(header, variable) for header, variable in options.headers_from.items()}

    async def run(self, job: Job) -> Sequence[RunResult]:
        """Run a job: its runs are submitted together, as many as a batch holds."""
        if "\0" in job.program:  # no program, and nothing that the service could store
            return [RunResult(status="error", detail="SyntaxError: source code cannot contain null bytes")]
        results: list[RunResult] = []
        async with self._slots.here(), self._client() as client:
            for start in range(0, len(job.runs), self._options.batch_size):
                batch = job.runs[start : start + self._options.batch_size]
                for result in await self._run_batch(client, job, batch):
                    results.append(result)
                    if job.stop_at_failure and result.status != "ok":
                        return results
        return results

    @property
    def runs_scripts(self) -> bool:
        """Whether `run_script` is there: processes of this service do not talk to each other."""
        return False

    async def run_script(self, job: ScriptJob) -> ScriptResult:
        """Not there."""
        raise ExecutorError("Judge0 runs no test code: it takes two processes that talk")

    def describe(self) -> str:
        """Where the service is."""
        return f"Judge0 at {self._url}: isolated by the service; {NO_SCRIPTS}"

    async def aclose(self) -> None:
        """Nothing is kept open."""

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self._url, headers=self._headers, timeout=self._options.request_timeout_s)

    async def _run_batch(self, client: httpx.AsyncClient, job: Job, runs: Sequence[Run]) -> list[RunResult]:
        marker = new_marker()
        submissions = [self._submission(job, run, marker) for run in runs]
        answer = await self._ask(client, "POST", {}, {"submissions": submissions})
        tokens = _tokens(answer)
        if len(tokens) != len(runs):
            raise ExecutorError(f"Judge0 at {self._url} gave {len(tokens)} tokens for {len(runs)} submissions")
        finished = await self._await(client, tokens)
        return [_result(run, job.limits, finished[token], marker) for run, token in zip(runs, tokens, strict=True)]

    def _submission(self, job: Job, run: Run, marker: str) -> dict[str, object]:
        limits = job.limits
        return {
            "language_id": self._options.language_id,
            "source_code": _to_base64(script_of(job, run, marker).encode("utf-8", "surrogatepass")),
            "stdin": _to_base64(stdin_of(run)),
            "cpu_time_limit": limits.cpu_s,
            "wall_time_limit": min(limits.wall_s, max(_LONGEST_WALL_S, _WALL_PER_CPU_SECOND * limits.cpu_s)),
            "memory_limit": limits.memory_mib << 10,
            "max_processes_and_or_threads": limits.processes,
            "max_file_size": max(limits.file_mib << 10, limits.output_kib),
            "enable_network": False,
        }

    async def _await(self, client: httpx.AsyncClient, tokens: Sequence[str]) -> dict[str, Submission]:
        finished: dict[str, Submission] = {}
        until = time.monotonic() + self._options.queue_timeout_s
        while waiting := [token for token in tokens if token not in finished]:
            if time.monotonic() > until:
                limit_s = self._options.queue_timeout_s
                raise ExecutorError(f"Judge0 at {self._url} did not finish {len(waiting)} runs in {limit_s:g} s")
            await asyncio.sleep(self._options.poll_interval_s)
            answer = await self._ask(client, "GET", {"tokens": ",".join(waiting), "fields": _FIELDS}, None)
            for token, submission in zip(waiting, _submissions(answer, len(waiting)), strict=True):
                if submission["status_id"] not in (_IN_QUEUE, _PROCESSING):
                    finished[token] = submission
        return finished

    async def _ask(self, client: httpx.AsyncClient, method: str, query: Mapping[str, str], body: object) -> object:
        parameters = {"base64_encoded": "true", **query}

        async def attempt() -> object:
            try:
                response = await client.request(method, "/submissions/batch", params=parameters, json=body)
            except httpx.TransportError as error:
                raise BusyError(f"no answer ({type(error).__name__}: {error})") from error
            return _body(response)

        try:
            return await patiently(attempt, self._options.retry_for_s, f"Judge0 at {self._url}")
        except httpx.HTTPError as error:
            raise ExecutorError(f"Judge0 at {self._url}: {error}") from error


def _body(response: httpx.Response) -> object:
    """The JSON of an answer; `BusyError` for those that may be better later."""
    text = response.text[:_SHOWN]
    if response.status_code in _BUSY:
        raise BusyError(f"HTTP {response.status_code} {text}", _pause_s(response))
    if response.status_code in (401, 403):
        raise ExecutorError(
            f"Judge0 refuses the credentials (HTTP {response.status_code}): set executor.judge0.headers_from"
        )
    if not response.is_success:
        raise ExecutorError(f"Judge0 refuses the request: HTTP {response.status_code} {text}")
    try:
        return response.json()
    except ValueError as error:
        raise ExecutorError(f"Judge0 answers with what is no JSON: {text}") from error


def _pause_s(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


def _tokens(answer: object) -> list[str]:
    tokens = []
    for each in answer if isinstance(answer, list) else [answer]:
        if not isinstance(each, dict) or not isinstance(each.get("token"), str):
            raise ExecutorError(f"Judge0 refuses a submission: {str(each)[:_SHOWN]}")
        tokens.append(each["token"])
    return tokens


def _submissions(answer: object, count: int) -> list[Submission]:
    found = answer.get("submissions") if isinstance(answer, dict) else None
    if not isinstance(found, list) or len(found) != count:
        raise ExecutorError(f"Judge0 answers with other submissions than were asked for: {str(answer)[:_SHOWN]}")
    for each in found:
        if not isinstance(each, dict) or not isinstance(each.get("status_id"), int):
            raise ExecutorError(f"Judge0 does not know a submission any more: {str(each)[:_SHOWN]}")
    return found


def _result(run: Run, limits: Limits, submission: Submission, marker: str) -> RunResult:
    status = submission["status_id"]
    errors = _text(submission.get("stderr")) or _text(submission.get("compile_output"))
    message = _text(submission.get("message"))
    wall_s = float(submission.get("wall_time") or 0.0)
    if status in (_INTERNAL_ERROR, _NO_EXECUTABLE):
        raise ExecutorError(f"Judge0 could not run a program: {message or 'internal error'}")
    stdout = _text(submission.get("stdout"))
    if status == _TOO_LONG:
        return limit_result("wall", limits, wall_s)
    if status == _FILE_TOO_LARGE or len(stdout) > 4 * (limits.output_kib << 10):
        return limit_result("output", limits, wall_s)
    signal_number = submission.get("exit_signal")
    if signal_number:
        return RunResult(status="killed", detail=errors or message or f"died of signal {signal_number}", wall_s=wall_s)
    if errors.rstrip().endswith("MemoryError"):
        return limit_result("memory", limits, wall_s)
    code = submission.get("exit_code")
    code = (0 if status == _ACCEPTED else 1) if code is None else int(code)
    printed, result = split_output(stdout, marker)
    if status == _NOT_COMPILED:
        code = code or 1
    return read_result(run, limits, code, printed, errors or message, result, wall_s)


def _text(encoded: object) -> str:
    """A text field, which comes in base64, with line breaks."""
    if not isinstance(encoded, str):
        return ""
    try:
        return base64.b64decode(encoded).decode("utf-8", "replace")
    except ValueError as error:
        raise ExecutorError(f"Judge0 answers with what is no base64: {encoded[:_SHOWN]}") from error


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _secret(header: str, variable: str) -> str:
    try:
        return os.environ[variable]
    except KeyError:
        raise ExecutorError(
            f"executor.judge0.headers_from: the environment variable {variable} for the header {header} is not set"
        ) from None
