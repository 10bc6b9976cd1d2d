from __future__ import annotations

import ast
import asyncio

import pytest

from grpo_rewards_code.executor.remote import BusyError, new_marker, patiently, script_of, split_output
from grpo_rewards_code.executor.types import CallRun, ExecutorError, Job, StdinRun
from grpo_rewards_code.sandbox.plan import sources


def test_a_script_is_sent_as_it_is() -> None:
    job = Job(program="print(1)", runs=[])
    assert script_of(job, StdinRun(stdin=""), "m") == "print(1)"


def test_what_is_sent_is_text_that_an_older_interpreter_reads_too() -> None:
    script = script_of(Job(program="x = 1", runs=[]), CallRun(function="f", arguments=(1,)), "m")
    ast.parse(script, feature_version=(3, 8))
    for name in ("grpo_rewards_code.executor.values", "grpo_rewards_code.sandbox.inside.program"):
        source = sources()[name]
        assert source is not None
        ast.parse(source, feature_version=(3, 8))


def test_the_result_is_what_follows_the_last_marker() -> None:
    marker = new_marker()
    assert split_output(f"out\n\n{marker}{{}}", marker) == ("out\n", b"{}")
    assert split_output(f"a\n{marker}1\n{marker}2", marker) == (f"a\n{marker}1", b"2")
    assert split_output("out\n", marker) == ("out\n", b"")


def test_markers_differ() -> None:
    assert new_marker() != new_marker()


def test_patience_ends() -> None:
    attempts = []

    async def busy() -> None:
        attempts.append(1)
        raise BusyError("queue is full", 0.01)

    with pytest.raises(ExecutorError, match=r"the service: queue is full, for 0.1 s"):
        asyncio.run(patiently(busy, 0.1, "the service"))
    assert len(attempts) > 1
