"""Honest programs get what an interpreter would give them; what exceeds a limit is said to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from grpo_rewards_code.executor.local import LocalExecutor
from grpo_rewards_code.executor.types import CallRun, ExecutorError, Job, Limits, StdinRun
from grpo_rewards_code.executor.values import Opaque
from tests.plugins.grpo_rewards_code.places import Place, plan_for
from tests.processes import below


@pytest.fixture(params=("nested", "alone"))
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Two of the isolations: a sandbox for each run (`single`) differs in nothing that is tested here."""
    found = Place(request.param)
    yield found
    asyncio.run(found.executor.aclose())


_USUAL = [
    "import sys\nprint(sys.stdin.read().upper())",
    "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read().upper())",
    "import os\nos.write(1, os.read(0, 1000).upper())",
    "print(open('/dev/stdin').read().upper())",
    "print(open(0).read().upper())",
    "import io, os\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\nprint(input().decode().upper())",
    "import mmap\nprint(mmap.mmap(0, 0, prot=mmap.PROT_READ).read().decode().upper())",
    "import sys\nfor line in sys.stdin:\n    print(line.upper(), end='')",
    "import sys\ninput = sys.stdin.readline\nprint(input().upper())",
    "if __name__ == '__main__':\n    print(input().upper())",
    "print(input().upper())\nquit()",
    "print(input().upper())\nexit(0)",
    "print(input().upper())\nraise SystemExit",
    "import sys\nsys.setrecursionlimit(100_000)\nf = lambda n: n and 1 + f(n - 1)\nassert f(50_000) == 50_000\n"
    "print(input().upper())",
    "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(2**27)\n"
    "def main():\n    f = lambda n: n and 1 + f(n - 1)\n    assert f(50_000)\n    print(input().upper())\n"
    "t = threading.Thread(target=main)\nt.start()\nt.join()",
    "import threading\nthreading.Thread(target=lambda: print(input().upper())).start()",
    "import atexit\ntext = input()\natexit.register(lambda: print(text.upper()))",
    "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    print(input().upper())\nasyncio.run(main())",
    "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: str\nprint(A(input()).x.upper())",
    "import sys\nassert len(str(10**10000)) == 10001\nprint(input().upper())",
]

_FAILING = [
    ("raise ValueError('no')", "error", "ValueError: no"),
    ("print(1)\nimport sys\nsys.exit(3)", "error", "exit code 3"),
    ("import sys\nsys.exit('bad input')", "error", "bad input"),
    ("def f(:", "error", "SyntaxError"),
    ("a = 1\0", "error", "null byte"),
    ("import os\nos.kill(os.getpid(), 9)", "killed", "SIGKILL"),
    ("import os\nos.abort()", "killed", "SIGABRT"),
    ("x = [0] * 10**10", "memory", "512 MiB"),
    ("x = []\nwhile True:\n    x.append('y' * 10**7)", "memory", "512 MiB"),
    ("while True:\n    print('z' * 10**6)", "output", "4096 KiB"),
]

_ENDLESS = [
    "while True:\n    pass",
    "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
    "import signal\nfor s in range(1, 65):\n    try:\n        signal.signal(s, signal.SIG_IGN)\n"
    "    except (OSError, ValueError):\n        pass\nwhile True:\n    pass",
    "import time\ntime.sleep(100)",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "import threading\nthreading.Thread(target=threading.Event().wait).start()",
    "x = 7 ** (10 ** 10)",
]


def test_a_script_reads_its_input_and_prints(place: Place) -> None:
    results = place.run(
        "a, b = map(int, input().split())\nprint(a + b)", StdinRun(stdin="3 4\n"), StdinRun(stdin="1 1")
    )
    assert [(result.status, result.stdout) for result in results] == [("ok", "7\n"), ("ok", "2\n")]


def test_the_usual_ways_to_read_and_to_end_work(place: Place) -> None:
    for program, result in zip(_USUAL, place.scripts(_USUAL, "hello\n"), strict=True):
        assert (result.status, result.stdout.strip()) == ("ok", "HELLO"), (program, result)


def test_a_call_gives_its_value_and_what_it_printed(place: Place) -> None:
    program = "def pair(x, y):\n    print('adding')\n    return {x: (x, [y])}"
    (result,) = place.run(program, CallRun(function="pair", arguments=(3, "a")))
    assert (result.status, result.value, result.stdout) == ("ok", {3: (3, ["a"])}, "adding\n")


def test_a_call_finds_a_method_of_the_class_solution(place: Place) -> None:
    program = "class Solution:\n    def twice(self, x):\n        return 2 * x\nif __name__ == '__main__':\n    input()"
    assert place.run(program, CallRun(function="twice", arguments=([1],)))[0].value == [1, 1]


def test_a_call_of_what_is_not_there_is_an_error_that_names_it(place: Place) -> None:
    (result,) = place.run("x = 1", CallRun(function="solve", arguments=()))
    assert result.status == "error"
    assert "neither a function 'solve'" in result.detail


def test_a_value_without_data_form_is_opaque(place: Place) -> None:
    program = "class Yes:\n    def __eq__(self, other):\n        return True\ndef f():\n    return Yes()"
    value = place.run(program, CallRun(function="f", arguments=()))[0].value
    assert isinstance(value, Opaque)
    assert value != 7


def test_a_program_that_fails_says_how(place: Place) -> None:
    results = place.scripts([program for program, _, _ in _FAILING])
    for (program, status, says), result in zip(_FAILING, results, strict=True):
        assert result.status == status, (program, result)
        assert says in result.detail, (program, result)


def test_a_call_that_ends_the_process_gave_no_value(place: Place) -> None:
    program = "import os, sys\ndef f(x):\n    os._exit(0) if x else sys.exit(0)"
    calls = [CallRun(function="f", arguments=(x,)) for x in (0, 1)]
    results = place.run(program, *calls, stop_at_failure=False)
    assert [result.status for result in results] == ["error", "error"]
    assert "before there was a value" in results[1].detail


def test_a_program_that_does_not_end_is_stopped_at_the_wall_limit(place: Place) -> None:
    for program, result in zip(_ENDLESS, place.scripts(_ENDLESS, limits=Limits(wall_s=0.7)), strict=True):
        assert (result.status, result.detail) == ("timeout", "stopped after 0.7 s"), (program, result)


def test_a_program_is_stopped_at_the_limit_on_processor_time(place: Place) -> None:
    result = place.script("while True:\n    pass", limits=Limits(wall_s=60.0, cpu_s=1.0))
    assert (result.status, result.detail) == ("timeout", "stopped after 1 s of processor time")


def test_runs_after_a_failure_are_left_out_unless_asked_for(place: Place) -> None:
    runs = [StdinRun(stdin=text) for text in ("0", "1", "2")]
    program = "x = int(input())\nprint(6 // (x - 1))"
    assert [each.status for each in place.run(program, *runs)] == ["ok", "error"]
    assert [each.status for each in place.run(program, *runs, stop_at_failure=False)] == ["ok", "error", "ok"]


def test_large_input_and_output_pass(place: Place) -> None:
    text = "x" * 3_000_000
    assert place.script("print(input())", text).stdout == text + "\n"


def test_text_that_is_no_text_passes_as_well(place: Place) -> None:
    assert place.script("import sys\nsys.stdout.buffer.write(b'\\xff')").stdout == "\ufffd"
    assert place.script("print(len(input()))", "\ud800").status == "ok"


def test_jobs_run_together_and_come_back_in_order(place: Place) -> None:
    async def both() -> list[str]:
        slow = Job(program="import time\ntime.sleep(0.5)\nprint('slow')", runs=[StdinRun(stdin="")])
        fast = Job(program="print('fast')", runs=[StdinRun(stdin="")])
        found = await asyncio.gather(*[place.executor.run(job) for job in (slow, fast, slow)])
        return [results[0].stdout.strip() for results in found]

    assert asyncio.run(both()) == ["slow", "fast", "slow"]


def test_a_cancelled_job_ends_at_once(place: Place) -> None:
    async def cancel() -> None:
        job = Job(program="import time\ntime.sleep(1000)", runs=[StdinRun(stdin="")], limits=Limits(wall_s=1000.0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(place.executor.run(job), 0.5)
        await place.executor.aclose()

    started = time.monotonic()
    asyncio.run(cancel())
    assert time.monotonic() - started < 30.0


def test_between_jobs_no_process_is_left(place: Place) -> None:
    others = set(below())
    assert place.says("print(1)") == "1"
    assert set(below()) <= others


def test_a_closed_executor_takes_no_job() -> None:
    closed = LocalExecutor(plan_for("alone"), workers=1)
    asyncio.run(closed.aclose())
    with pytest.raises(ExecutorError, match="could not be taken on"):
        asyncio.run(closed.run(Job(program="", runs=[StdinRun(stdin="")])))


def test_the_description_names_what_confines_programs(place: Place) -> None:
    assert "no network" in place.executor.describe()
    assert "2 at a time" in place.executor.describe()


def test_the_input_is_a_file_that_nobody_can_change(place: Place) -> None:
    program = (
        "import os\n"
        "for change in (lambda: os.write(0, b'x'), lambda: os.ftruncate(0, 1 << 40), lambda: os.truncate(0, 0)):\n"
        "    try:\n        change()\n        print('changed')\n    except OSError:\n        pass\n"
        "print(os.fstat(0).st_size, os.read(0, 9))"
    )
    text = "a" * (17 << 20)  # more than the largest file that the program may write
    [result] = place.run(program, StdinRun(stdin=text))
    assert (result.status, result.stdout) == ("ok", f"{len(text)} {b'a' * 9!r}\n")
