"""A program forges no result, and leaves nothing to the runs after it, not even a broken sandbox."""

from __future__ import annotations

from grpo_rewards_code.executor.types import StdinRun
from tests.plugins.grpo_rewards_code.places import Place


def test_a_forged_result_is_no_more_than_a_wrong_answer(place: Place) -> None:
    program = """
import os
for number in range(1, 64):
    try:
        os.write(number, b'{"end": "ok", "value": 7, "passed": 3}')
    except OSError:
        pass
os._exit(0)
"""
    result = place.run(program, StdinRun(stdin=""))[0]
    assert (result.status, result.value) == ("ok", None)


def test_nothing_of_a_run_is_left_for_the_next(place: Place) -> None:
    program = """
import os, sys, builtins, json
seen = []
for folder in ("/tmp", "/dev/shm"):
    try:
        seen += os.listdir(folder) if folder != "/tmp" or os.access("/tmp", os.W_OK) else []
    except OSError:
        pass
seen += [name for name in ("planted",) if hasattr(builtins, name) or name in os.environ]
for folder in ("/tmp", "/dev/shm"):
    try:
        open(folder + "/planted", "w").close()
    except OSError:
        pass
builtins.planted = os.environ["planted"] = "yes"
json.loads = None
try:
    if os.fork() == 0:
        os.setsid()
        import time
        time.sleep(100)
except OSError:
    pass
try:
    seen += [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 3]
except OSError:
    pass
print(seen)
"""
    assert "planted" not in str(place.scripts([program])[0].stdout)
    runs = place.run(program, StdinRun(stdin=""), StdinRun(stdin=""), StdinRun(stdin=""))
    assert [(result.status, result.stdout) for result in runs] == [("ok", "[]\n")] * 3


def test_nothing_that_the_kernel_keeps_is_left_for_the_next_program(place: Place) -> None:
    """Names, queues, shared memory, settings, the clock, the folders."""
    program = """
import ctypes, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
found = [socket.gethostname() == "planted"]
def leave(do):
    try:
        return do()
    except (OSError, AttributeError, OverflowError):
        return None
leave(lambda: socket.sethostname("planted"))
found.append(libc.shmget(4711, 4096, 0o600) >= 0)
libc.shmget(4711, 4096, 0o1600)
found.append(libc.msgget(4711, 0o600) >= 0)
libc.msgget(4711, 0o1600)
found.append(libc.semget(4711, 1, 0o600) >= 0)
libc.semget(4711, 1, 0o1600)
found += [leave(lambda: os.path.exists(folder + "/planted")) for folder in ("/tmp", "/dev/shm", "/dev/mqueue", ".")]
for folder in ("/tmp", "/dev/shm", "/dev/mqueue", "."):
    leave(lambda: open(folder + "/planted", "w").close())
leave(lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
found.append(time.time() < 10 ** 9)
def rewrite(path):
    with open(path, "r+b", buffering=0) as file:
        value = file.read()
        file.seek(0)
        return file.write(value)
for place, _, names in os.walk("/proc/sys"):
    found += [name for name in names if leave(lambda: rewrite(os.path.join(place, name)))]
print(sorted(set(map(str, found))))
"""
    first, second = place.scripts([program])[0], place.scripts([program])[0]
    assert (first.status, first.stdout) == (second.status, second.stdout), (first, second)
    if place.mode != "single":  # there every run has a sandbox, and may set what it likes in it
        assert set(second.stdout.split()) <= {"['False']", "['False',", "'None']"}


def test_a_program_that_dies_in_every_way_leaves_the_sandbox_working(place: Place) -> None:
    ways = [
        "import os\nfor n in range(3000):\n    try:\n        os.close(n)\n    except OSError:\n        pass",
        "import os\nos._exit(77)",
        "import ctypes\nctypes.string_at(0)",
        "import os, signal\nos.killpg(0, signal.SIGKILL)",
        "import sys\nsys.stdout = sys.stderr = sys.stdin = None",
        "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\nraise ValueError",
        "import builtins, os, json\nbuiltins.len = builtins.isinstance = json.dumps = os.write = None",
        "import gc\nfor each in gc.get_objects():\n    if type(each) is dict:\n        try:\n            each.clear()\n"
        "        except BaseException:\n            pass",
        "import os\ntry:\n    os.fork()\nexcept OSError:\n    pass\nos.abort()",
    ]
    assert len(place.scripts(ways)) == len(ways)
    assert place.says("print(6 * 7)") == "42"
