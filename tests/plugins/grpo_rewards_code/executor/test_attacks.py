"""Each class of attack that docs/security.md names, tried in each isolation.

An attacking program prints what it got, so that a test fails when an attack succeeds, not when it ends in another way.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grpo_rewards_code.executor.types import Limits, StdinRun
from tests.plugins.grpo_rewards_code.places import Place

_LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
_SHORT = Limits(wall_s=3.0, cpu_s=3.0)


def test_the_environment_holds_no_secret(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_TEST_SECRET", "hunter")
    program = (
        "import os\nprint(os.environ)\ntry:\n    print(open('/proc/self/environ').read())\nexcept OSError:\n    pass"
    )
    text = place.says(program)
    assert "SANDBOX_TEST_SECRET" not in text
    assert "hunter" not in text


def test_no_other_process_can_be_read(place: Place) -> None:
    program = """
import os
found = []
for pid in range(1, 100_000):
    for name in ("environ", "cmdline", "maps", "mem", "fd/0"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if name == "mem":
                    file.seek(4096)
                found.append((pid, name, file.read(200)))
        except (OSError, ValueError):
            if name == "environ" and not os.path.exists(f"/proc/{pid}"):
                break
print([each for each in found if each[0] != os.getpid() and b"bootstrap" not in each[2] and each[2]])
"""
    others = place.says(program)
    assert "pytest" not in others
    assert "environ" not in others
    assert "'mem'" not in others


def test_no_file_outside_can_be_read_or_written(place: Place, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o777)
    secret, target = tmp_path / "secret.txt", tmp_path / "left.txt"
    secret.write_text("hunter")
    os.chmod(secret, 0o666)
    program = f"""
import os
def attempt(do):
    try:
        return do()
    except OSError as error:
        return type(error).__name__
print(attempt(lambda: open({str(secret)!r}).read()))
print(attempt(lambda: open({str(secret)!r}, "a").write("x")))
print(attempt(lambda: open({str(target)!r}, "w").write("x")))
print(attempt(lambda: os.remove({str(secret)!r})))
print(attempt(lambda: os.rename({str(secret)!r}, {str(target)!r})))
print(attempt(lambda: os.truncate({str(secret)!r}, 0)))
print(attempt(lambda: os.chmod({str(secret)!r}, 0)))
print(attempt(lambda: os.utime({str(secret)!r}, (0, 0))))
print(attempt(lambda: os.mkdir({str(target)!r})))
print(attempt(lambda: os.link({str(secret)!r}, "/tmp/linked")))
print(attempt(lambda: os.symlink({str(secret)!r}, "/tmp/symbolic") or open("/tmp/symbolic").read()))
print(attempt(lambda: open("/etc/passwd").read()))
print(attempt(lambda: os.listdir({str(tmp_path)!r})))
print(attempt(lambda: open("/proc/1/root{secret}").read()))
"""
    before = secret.stat()
    said = place.says(program).split()
    assert set(said) <= {"FileNotFoundError", "PermissionError", "OSError", "NotADirectoryError"}, said
    after = secret.stat()
    assert secret.read_text() == "hunter"
    assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)
    assert os.listdir(tmp_path) == ["secret.txt"]


def test_the_system_s_own_folders_are_read_only(place: Place) -> None:
    program = """
import os, sys
written = []
folders = ["/", "/usr", "/usr/lib", "/etc", "/dev", "/proc", "/var", "/var/tmp", "/run", "/sys"]
for folder in [*folders, os.path.dirname(os.__file__)]:
    try:
        open(folder + "/planted.py", "w").close()
        written.append(folder)
    except OSError:
        pass
print(written)
"""
    assert place.says(program) == "[]"


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


def test_no_connection_leaves(place: Place, tmp_path: Path) -> None:
    with _listeners(tmp_path) as (port, path, abstract, accepted):
        program = f"""
import socket
def attempt(family, address):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(1)
            s.connect(address)
            return "connected"
    except OSError as error:
        return "refused"
print(attempt(socket.AF_INET, ("127.0.0.1", {port})))
print(attempt(socket.AF_INET, ("1.1.1.1", 53)))
print(attempt(socket.AF_INET6, ("::1", {port})))
print(attempt(socket.AF_UNIX, {path!r}))
print(attempt(socket.AF_UNIX, {abstract!r}))
for family in (socket.AF_VSOCK, socket.AF_NETLINK, socket.AF_PACKET, 38):
    try:
        socket.socket(family, socket.SOCK_STREAM if family != socket.AF_NETLINK else socket.SOCK_RAW)
        print("opened", family)
    except OSError:
        print("refused")
"""
        assert set(place.says(program).split()) == {"refused"}
        assert not accepted()


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT"])
def test_no_signal_reaches_another_process(place: Place, signal_name: str) -> None:
    program = f"""
import os, signal
for pid in [os.getppid(), 1, 0, *range(2, 40), {os.getpid()}]:
    if pid not in (os.getpid(), 0):
        try:
            os.kill(pid, signal.{signal_name})
        except OSError:
            pass
print("alive")
"""
    everybody = "import os, signal\ntry:\n    os.kill(-1, signal.SIGKILL)\nexcept OSError:\n    pass\nprint('alive')"
    assert [result.stdout for result in place.scripts([program, everybody, program])] == ["alive\n"] * 3
    assert place.says("print(1)") == "1"


def test_no_child_outlives_its_program(place: Place) -> None:
    token = f"sandbox-test-{os.getpid()}-{time.monotonic_ns()}"
    program = f"""
import os, subprocess, sys
for _ in range(5):
    try:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", {token!r}], start_new_session=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        pass
if {{}}:
    while True:
        pass
print("done")
"""
    ended, endless = program.replace("{}", "False"), program.replace("{}", "True")
    results = place.scripts([ended, endless], limits=_SHORT)
    assert [result.status for result in results] == ["ok", "timeout"]
    assert not _with_command(token)


def test_children_work_where_there_are_namespaces(place: Place) -> None:
    program = """
import multiprocessing, os, subprocess, sys
def square(x):
    return x * x
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(square, [1, 2, 3]))
    print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout)
"""
    result = place.script(program)
    if place.mode == "alone":
        assert (result.status, "PermissionError" in result.detail) == ("error", True)
    else:
        assert (result.status, result.stdout.split()) == ("ok", ["[1,", "4,", "9]", "42"])


def test_a_fork_bomb_and_a_thread_bomb_stop_at_the_limit(place: Place) -> None:
    forks = "import os, time\nwhile True:\n    os.fork()"
    stubborn = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    threads = """
import threading, time
threading.stack_size(65536)
while True:
    try:
        threading.Thread(target=time.sleep, args=(60,)).start()
    except RuntimeError:
        time.sleep(0.01)
"""
    results = place.scripts([forks, stubborn, threads], limits=_SHORT)
    assert all(result.status in ("error", "timeout", "processes", "killed") for result in results), results
    assert _processes_of_this_user() < 1000


def test_the_memory_of_all_processes_together_is_limited(place: Place) -> None:
    program = """
import mmap, os, time
for _ in range(8):
    if os.fork() == 0:
        held = mmap.mmap(-1, 100 << 20)
        held.write(b"x" * (100 << 20))
        time.sleep(60)
time.sleep(60)
"""
    result = place.script(program, limits=Limits(wall_s=30.0, memory_mib=256))
    assert result.status == ("error" if place.mode == "alone" else "memory"), result


def test_files_fill_neither_memory_nor_disk(place: Place) -> None:
    program = """
import os
total = files = 0
try:
    with open("/tmp/large", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
            file.flush()
            total += 1
except OSError:
    pass
for number in range(200):
    try:
        with open(f"/tmp/{number}", "wb") as file:
            file.write(b"x" * (3 << 20))
            total += 3
    except OSError:
        break
print(total)
"""
    used_mib = int(place.script(program, limits=Limits(file_mib=4, wall_s=20.0)).stdout)
    assert used_mib <= (64 if place.mode == "single" else 16)
    assert place.script(program, limits=Limits(file_mib=0, wall_s=20.0)).stdout == "0\n"


def test_the_number_of_files_is_limited(place: Place) -> None:
    if place.mode == "single":
        pytest.skip("bubblewrap cannot limit it; docs/security.md says so")
    program = """
n = 0
try:
    while True:
        open(f"/tmp/{n}", "w").close()
        n += 1
except OSError:
    print(n)
"""
    assert int(place.says(program)) < 1100


def test_error_output_without_end_is_not_kept(place: Place) -> None:
    result = place.script("import sys\nfor _ in range(50):\n    sys.stderr.write('e' * 10**6)\nprint('done')")
    assert (result.status, result.stdout) == ("ok", "done\n")
    assert len(result.detail) <= 5000


def test_no_descriptor_of_the_trainer_is_inherited(place: Place, tmp_path: Path) -> None:
    file = (tmp_path / "open.txt").open("w")
    os.set_inheritable(file.fileno(), True)
    program = """
import os
found = []
for number in range(3, 2000):
    try:
        os.fstat(number)
        found.append(number)
        os.write(number, b"{}")
    except OSError:
        pass
print(found)
"""
    try:
        assert place.says(program) in ("[4]", "[]")  # where the result goes: what it says is the program's to say
    finally:
        file.close()
    assert (tmp_path / "open.txt").read_text() == ""


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


_CALLS = {
    "ptrace": "libc.ptrace(16, os.getppid(), 0, 0)",
    "trace me": "libc.ptrace(0, 0, 0, 0)",
    "mount": "libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)",
    "umount": "libc.umount2(b'/proc', 2)",
    "unshare user": "libc.unshare(0x10000000)",
    "unshare net": "libc.unshare(0x40000000)",
    "setns": "libc.setns(0, 0)",
    "chroot": "libc.chroot(b'/tmp')",
    "pivot_root": "libc.syscall(155, b'/tmp', b'/tmp')",
    "clone into a namespace": "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
    "clone3": "libc.syscall(435, ctypes.create_string_buffer(88), 88)",
    "io_uring": "libc.syscall(425, 8, ctypes.create_string_buffer(120))",
    "keyctl": "libc.syscall(250, 0, -3, 0)",
    "add_key": "libc.syscall(248, b'user', b'name', b'x', 1, -3)",
    "bpf": "libc.syscall(321, 0, ctypes.create_string_buffer(64), 64)",
    "perf_event_open": "libc.syscall(298, ctypes.create_string_buffer(112), 0, -1, -1, 0)",
    "userfaultfd": "libc.syscall(323, 0)",
    "process_vm_readv": "libc.syscall(310, os.getppid(), 0, 0, 0, 0, 0)",
    "kcmp": "libc.syscall(312, os.getpid(), os.getppid(), 0, 0, 0)",
    "open_by_handle_at": "libc.syscall(304, 0, ctypes.create_string_buffer(64), 0)",
    "sethostname": "libc.sethostname(b'x', 1)",
    "memfd_create": "libc.memfd_create(b'x', 0)",
    "shmget": "libc.shmget(0x5EC, 4096, 0o1666)",
    "msgget": "libc.msgget(0x5EC, 0o1666)",
    "semget": "libc.semget(0x5EC, 1, 0o1666)",
    "setuid": "max(libc.setuid(0), libc.setresuid(0, 0, 0))",
    "32-bit numbers": "libc.syscall(0x40000000 + 39)",
}


def test_calls_that_reach_around_the_isolation_fail(place: Place) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are of x86-64")
    names = [name for name in _CALLS if name != "32-bit numbers"]
    program = _LIBC + "".join(f"print({name!r}, ':', {_CALLS[name]} >= 0, sep='')\n" for name in names)
    assert [line for line in place.says(program).splitlines() if not line.endswith("False")] == []


def test_calls_by_other_numbers_are_fatal(place: Place) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("only x86-64 has them")
    assert place.script(_LIBC + _CALLS["32-bit numbers"]).status == "killed"


def test_the_user_is_nobody_and_has_no_capability(place: Place) -> None:
    assert "0" not in place.says("import os\nprint(os.getuid(), os.geteuid(), os.getgid())").split()
    if place.mode != "alone":
        status = place.says("print(open('/proc/self/status').read())")
        facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        assert {facts[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert facts["NoNewPrivs"].strip() == "1"
        assert facts["Seccomp"].strip() == "2"


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


def test_the_program_is_not_told_what_is_expected_by_any_frame_or_object(place: Place) -> None:
    program = """
import gc, sys
found = []
frame = sys._getframe()
while frame:
    found += [name for name in (*frame.f_locals, *frame.f_globals) if "expect" in name.lower()]
    frame = frame.f_back
print(sorted(set(found)))
"""
    assert place.says(program) == "[]"


@contextmanager
def _listeners(folder: Path) -> Iterator[tuple[int, str, str, object]]:
    """Servers of three kinds; the last of what is given says whether anybody connected."""
    abstract = f"\0sandbox-test-{os.getpid()}"
    path = str(folder / "socket") if len(str(folder)) < 80 else f"/tmp/sandbox-test-{os.getpid()}"
    addresses = [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, path), (socket.AF_UNIX, abstract)]
    servers = [socket.socket(family) for family, _ in addresses]
    try:
        for server, (_, address) in zip(servers, addresses, strict=True):
            server.bind(address)
            server.listen()
            server.setblocking(False)
        os.chmod(path, 0o777)
        yield servers[0].getsockname()[1], path, abstract, lambda: any(map(_accepts, servers))
    finally:
        for server in servers:
            server.close()
        os.unlink(path)


def _accepts(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _with_command(token: str) -> list[str]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if token.encode() in command:
            found.append(name)
    return found


def _processes_of_this_user() -> int:
    return len(list(filter(str.isdigit, os.listdir("/proc"))))


def test_the_sandboxes_end_with_a_trainer_that_is_killed(place: Place) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[4])!r})
from tests.plugins.grpo_rewards_code.places import Place
from grpo_rewards_code.executor.types import Limits
place = Place({place.mode!r})
place.script("import time\\ntime.sleep(1000)", limits=Limits(wall_s=900.0))
"""
    with subprocess.Popen([sys.executable, "-c", script], start_new_session=True) as trainer:
        until = time.monotonic() + 60
        while not (family := _descendants(trainer.pid)) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1.0)
        family = _descendants(trainer.pid)
        assert family
        trainer.kill()
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in family) and time.monotonic() < until:
        time.sleep(0.1)
    assert [pid for pid in family if Path(f"/proc/{pid}").exists()] == []


def _descendants(root: int) -> list[int]:
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]
