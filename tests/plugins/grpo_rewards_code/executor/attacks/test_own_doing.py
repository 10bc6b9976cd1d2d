"""What a program does to what is read about it is its own doing: no name, file, word or status makes the sandbox fail.

An executor that fails raises, so that each run here that gives a result at all has shown it.
"""

from __future__ import annotations

import json
import random
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_rewards_code.checks import holds
from grpo_rewards_code.compare import Tolerance
from grpo_rewards_code.executor.outcome import read_result
from grpo_rewards_code.executor.types import CallRun, Limits, RunResult, StdinRun
from grpo_rewards_code.executor.values import _KINDS
from grpo_rewards_code.problem.types import Check, Equal, Output, Test
from tests.plugins.grpo_rewards_code.places import Place

_DICE = random.Random(7)
_NAMES = [
    b"\xff",
    b"\xc3(",
    b") R 1 1",
    b"a) b\n(c",
    b"\n\n\n",
    b" ",
    b"",
    *(bytes(_DICE.choices(b"() \n\t\x01\x80\xfe\xffRZ9-", k=_DICE.randint(1, 15))) for _ in range(8)),
]
"""Of processes, of at most 15 bytes."""
_LOOK_S = 0.06
"""Longer than the time between two looks at a program."""


def test_no_name_of_a_process_makes_the_sandbox_fail(place: Place) -> None:
    program = f"""
import ctypes, threading, time
for name in {_NAMES!r}:
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    try:
        with open("/proc/self/comm", "wb") as file:
            file.write(name)
    except OSError:
        pass
    time.sleep({_LOOK_S})
print("end")
"""
    assert place.says(program) == "end"


def test_no_command_line_of_a_child_makes_the_sandbox_fail(place: Place) -> None:
    if place.mode == "alone":
        pytest.skip("there are no children")
    program = f"""
import os, shutil, sys
shutil.copy(sys.executable, b"/tmp/) \\n\\xff")
for name in {_NAMES[:4]!r}:
    pid = os.fork()
    if pid == 0:
        os.execve(b"/tmp/) \\n\\xff", [name, b"-S", b"-c", b"import time; time.sleep({_LOOK_S})"], {{b"\\xff": name}})
    os.waitpid(pid, 0)
print("end")
"""
    assert place.script(program, limits=Limits(file_mib=64, wall_s=20.0)).stdout == "end\n"


@pytest.mark.parametrize("mode", ["0", "0o100", "0o300", "0o500", "0o777"])
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_no_mode_of_its_folders_makes_the_sandbox_fail(place: Place, folder: str, mode: str) -> None:
    program = f"""
import os
try:
    os.chmod({folder!r}, {mode})
except OSError:
    pass
print("end")
"""
    assert [each.stdout for each in place.run(program, *[StdinRun(stdin="")] * 2)] == ["end\n"] * 2


def test_no_file_that_it_leaves_makes_the_sandbox_fail(place: Place) -> None:
    program = r"""
import os
for make in (
    lambda: open(b"\xff\n)", "w"),
    lambda: open("a" * 255, "w"),
    lambda: os.mkdir("closed", 0),
    lambda: os.mkdir("unlisted", 0o300),
    lambda: open("unlisted/file", "w"),
    lambda: os.symlink("/", "link"),
    lambda: os.symlink(b"\xff", b"\xfe"),
    lambda: os.mkfifo("pipe"),
    lambda: os.mknod("node"),
    lambda: os.setxattr("a" * 255, "user.a", b"\xff"),
    lambda: os.chmod(b"\xff\n)", 0),
):
    try:
        make()
    except OSError:
        pass
try:
    for _ in range(40):
        os.mkdir("d")
        os.chdir("d")
except OSError:
    pass
print("end")
"""
    assert [each.stdout for each in place.run(program, *[StdinRun(stdin="")] * 2)] == ["end\n"] * 2
    assert place.says("import os\nprint(os.listdir())") == "[]"


def test_no_output_and_no_status_makes_the_sandbox_fail(place: Place) -> None:
    program = """
import os, sys
status, stdout, errors, result = eval(sys.stdin.read())
for number, data in ((1, stdout), (2, errors), (4, result)):
    os.write(number, data)
os._exit(status)
"""
    inputs = [
        repr((_DICE.choice([0, 1, 77, 128, 255]), *(_DICE.randbytes(_DICE.randint(0, 40)) for _ in range(3))))
        for _ in range(6 if place.mode == "single" else 40)
    ]
    results = place.run(program, *(StdinRun(stdin=text) for text in inputs), stop_at_failure=False)
    assert [each.status for each in results] == ["ok" if text.startswith("(0,") else "error" for text in inputs]


def test_nothing_that_a_program_does_to_itself_makes_the_sandbox_fail(place: Place) -> None:
    ways = """
    class E(Exception): pass
    E.__name__ = E.__qualname__ = "\\ud800"
    raise E("\\udcff")
    ---
    import sys; sys.exit("\\ud800")
    ---
    import sys; sys.exit(10 ** 5000)
    ---
    import os; os.environb[b"\\xff"] = b"\\xfe"; os.closerange(0, 4000)
    ---
    import os; os.sched_setaffinity(0, {0}); os.dup2(4, 1); print("\\x00" * 100)
    ---
    import os, signal
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    os.abort()
    """
    programs = textwrap.dedent(ways).split("---\n")
    assert len(place.scripts(programs)) == len(programs)
    assert place.says("print(1)") == "1"


def test_who_watches_cannot_be_slowed_down(place: Place) -> None:
    program = """
import os
for slow in (
    lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
    lambda: os.setpriority(os.PRIO_USER, 0, 19),
    lambda: os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0)),
    lambda: os.sched_setaffinity(os.getppid(), {0}),
):
    try:
        slow()
        print("slowed")
    except PermissionError:
        pass
print("end")
"""
    assert place.says(program) == "end"


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, categories=None), max_size=6)
    | st.sampled_from(["ff", "0x1", "inf", "nan", "1e999999", "-0", "sNaN", "9" * 5000]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(
            st.sampled_from(sorted(_KINDS)),
            inner | st.lists(inner, max_size=3) | st.lists(st.tuples(inner, inner), max_size=3),
        )
    ),
    max_leaves=12,
)
_CHECKS: list[Check] = [
    *(
        Equal(any_of=(value,), style=style, unordered=unordered)
        for value in (1, 1.5, "a", [1, 2.5, "a"], {"a": [1.0]}, {1: 2, 3.0: 4}, {1, 2}, (1, (2,)), None, 10**400, 2j)
        for style, unordered in (("json", False), ("python", True))
    ),
]
_CALL = CallRun(function="f", arguments=())


@given(value=_JSON, end=st.sampled_from(["ok", "error", "memory", "output", "?"]), cut=st.integers(0, 3))
def test_no_forged_value_breaks_the_comparison(value: object, end: str, cut: int) -> None:
    said = json.dumps({"end": end, "value": json.dumps(value)}).encode()
    result = read_result(_CALL, Limits(), 0, "", "", said[: len(said) - cut], 0.1)
    for check in _CHECKS:
        assert holds(Test(run=_CALL, check=check), result, Tolerance()) in (True, False)


@given(result=st.binary(max_size=40), printed=st.binary(max_size=60), code=st.integers(0, 255))
def test_no_bytes_in_the_place_of_a_result_break_the_comparison(result: bytes, printed: bytes, code: int) -> None:
    text = printed.decode("utf-8", "replace")
    for run in (_CALL, StdinRun(stdin="")):
        found = read_result(run, Limits(), code, text, text, result, 0.1)
        assert isinstance(found, RunResult)
        for expected in ("7\n", "0.5 1e3\nab", ""):
            for unordered in (False, True):
                check = Output(any_of=(expected,), unordered=unordered)
                assert holds(Test(run=run, check=check), found, Tolerance()) in (True, False)
