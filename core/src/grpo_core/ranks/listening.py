"""Where a run listens: at the address that its ranks use, and at no other of this machine's."""

from __future__ import annotations

import errno
import ipaddress
import socket
from datetime import timedelta
from typing import Any

import torch.distributed as dist

__all__ = ["listen_at", "make_store"]

_ELSEWHERE = ""
"""All addresses of this machine."""


def listen_at(address: str, port: int = 0, *, backlog: int = 1024) -> socket.socket:
    """A socket that listens at an address by which others reach this machine; raises `OSError` where the port is taken.

    Some addresses say nothing about where: a name that leads to this machine's loopback here and to it elsewhere, as
    some systems write into /etc/hosts, and one of something in between, which hands on. Then it listens everywhere.
    """
    for family, host in _own_places(address):
        try:
            return socket.create_server((host, port), family=family, backlog=backlog)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
    return socket.create_server((_ELSEWHERE, port), backlog=backlog)


def make_store(address: str, port: int, *, limit_s: float) -> Any:
    """torch's store, kept by this process, for all who connect to `address`. It asks nobody who they are."""
    with listen_at(address, port) as listener:
        return dist.TCPStore(
            address,
            listener.getsockname()[1],
            is_master=True,
            timeout=timedelta(seconds=limit_s),
            wait_for_workers=False,
            master_listen_fd=listener.detach(),  # the store's from now on
        )


def _own_places(address: str) -> list[tuple[int, str]]:
    """What an address leads to that is worth trying."""
    try:
        found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    except OSError:
        return []  # whoever connects will say so
    places = [(int(family), str(where[0])) for family, _, _, _, where in found]
    if address == "localhost" or _is_loopback(address):
        return [place for place in places if place[0] == socket.AF_INET] or places
    return [place for place in places if not _is_loopback(place[1])]


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False  # a name
