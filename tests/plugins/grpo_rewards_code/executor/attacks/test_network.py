"""No program connects to anything: neither a network nor a socket of this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_rewards_code.executor.types import StdinRun
from tests.plugins.grpo_rewards_code.places import Place


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


_SPEAKS = """
import socket
def counters():
    found = []
    for name in ("snmp", "snmp6", "netstat"):
        try:
            found += open("/proc/net/" + name).read().split()
        except OSError:
            pass
    return sum(int(each) for each in found if each.isdigit() and each not in ("64", "1", "2", "200", "120000"))
print(counters())
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    try:
        with socket.create_server((address, 5577), family=family) as server:
            mine = socket.create_connection(server.getsockname()[:2])
            yours, _ = server.accept()
            mine.close()
            print(yours.recv(1))
            yours.close()
    except OSError as error:
        print(type(error).__name__, error.errno)
"""


def test_no_traffic_of_a_program_shows_to_the_next_or_to_its_next_run(place: Place) -> None:
    """Neither in counters nor as a port that is still being closed, on which no server can listen at once."""
    jobs = [place.run(_SPEAKS, *[StdinRun(stdin="")] * 2) for _ in range(2)]
    results = [result for job in jobs for result in job]
    if place.mode == "alone":
        assert "b''" not in "".join(result.stdout for result in results)
    else:
        assert len({result.stdout for result in results}) == 1, results
        assert "b''" in results[0].stdout


def test_a_program_may_speak_to_itself_where_there_are_namespaces(place: Place) -> None:
    if place.mode != "alone":
        assert place.says(_SPEAKS).count("b''") >= 1


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
