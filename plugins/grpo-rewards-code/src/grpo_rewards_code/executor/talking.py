"""A script job in two sandboxes of this machine: what each is told, and what is made of how the talk went.

Place in the flow: script job → local executor → **talking** → relay → script result.
"""

from __future__ import annotations

import json
import threading
from dataclasses import replace

from grpo_rewards_code.executor.outcome import to_result
from grpo_rewards_code.executor.types import ExecutorError, Limits, ScriptJob, ScriptResult, StdinRun
from grpo_rewards_code.sandbox.exchange import Finished
from grpo_rewards_code.sandbox.process import Sandbox
from grpo_rewards_code.sandbox.relay import Talk, relay

__all__ = ["talk_in"]

_ENDED = "the program ended"
_SHOWN = 200


def talk_in(program: Sandbox, script: Sandbox, job: ScriptJob, wanted: threading.Event) -> ScriptResult:
    """Run both sides in a sandbox each; raises `ExecutorError`."""
    limits = job.limits
    times = 1 + job.checks
    asked = replace(limits, cpu_s=min(limits.cpu_s * times, max(limits.cpu_s, job.total_s)))
    talk = relay(
        program.order(task=_program_task(job), limits=asked),
        script.order(task=_script_task(job), limits=asked),
        turn_s=limits.wall_s,
        script_s=min(limits.wall_s * times, max(limits.wall_s, job.total_s)),
        total_s=job.total_s,
        wanted=wanted,
        say_ended=_ENDED,
    )
    return _result(talk, limits, asked)


def _program_task(job: ScriptJob) -> bytes:
    return json.dumps({"kind": "asked", "program": job.program, "call_cpu_s": job.limits.cpu_s}).encode()


def _script_task(job: ScriptJob) -> bytes:
    task = {
        "kind": "script",
        "script": job.script,
        "entry_point": job.entry_point,
        "partial": job.go_on,
        "relative": job.relative_tolerance,
        "absolute": job.absolute_tolerance,
    }
    return json.dumps(task).encode()


def _result(talk: Talk, limits: Limits, asked: Limits) -> ScriptResult:
    if talk.verdict is None:
        how = _how(talk.script, asked)
        if talk.answers:  # what it was given may be why it did not end
            return ScriptResult(passed=0, tests=1, reason=f"its test code did not end well: {how}")
        return ScriptResult(passed=0, tests=1, unjudged=f"its test code fails by itself: {how}")
    try:
        said = json.loads(talk.verdict[1:])
    except ValueError as error:
        raise ExecutorError(f"a script gave no verdict that can be read: {error}") from error
    reason = str(said["reason"])
    if reason.endswith(_ENDED):
        reason = reason.replace(f"error: {_ENDED}", _how(talk.program, limits))
    return ScriptResult(passed=int(said["passed"]), tests=int(said["tests"]), reason=reason, unjudged=said["none"])


def _how(finished: Finished, limits: Limits) -> str:
    """How a side ended that should not have."""
    result = to_result(StdinRun(stdin=""), finished, limits)
    lines = result.detail.strip().splitlines()
    status = "error" if result.status == "ok" else result.status
    return f"{status}: {lines[-1][:_SHOWN] if lines else 'it ended before it answered'}"
