"""The program's side: executes the program, then does what the script asks of it, until nobody asks any more.

Of the script nothing is here but what it hands over as arguments.

Place in the flow: host → peer → **served** → program.
"""

from __future__ import annotations

import builtins
import io
import os
import resource
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, TextIO

from grpo_rewards_code.script.inside.peer import Ended, Peer

__all__ = ["reader", "serve", "writer"]

_OWN = "__builtins__", "__file__", "__name__", "__doc__", "__package__", "__loader__", "__spec__"


def serve(
    module: types.ModuleType,
    read: Callable[[], str],
    write: Callable[[str], None],
    largest_bytes: int,
    call_cpu_s: float,
) -> None:
    """Answer requests about a module that has been executed; `call_cpu_s`: processor time of each."""
    served = _Served(module, read, write, largest_bytes)
    try:
        while line := read():
            _allow(call_cpu_s)
            served.peer.answer(line[1:])
    except Ended:
        return


def _allow(cpu_s: float) -> None:
    """From now on, so much processor time; what the sandbox allows altogether stays as it is."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(usage.ru_utime + usage.ru_stime + max(1.0, cpu_s) + 0.999)
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft, hard), hard))


class _Served:
    """What can be asked for."""

    def __init__(
        self, module: types.ModuleType, read: Callable[[], str], write: Callable[[str], None], largest_bytes: int
    ) -> None:
        self._module = module
        self.peer = Peer(read, write, self._do, largest_bytes)
        self.peer.with_around = self._with_streams  # type: ignore[method-assign]
        self.peer.used = self._used  # type: ignore[method-assign]
        self._printed: io.StringIO | None = None
        self._read = 0
        self._loop: Any = None

    def _do(self, operation: str, target: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> object:
        self._printed = io.StringIO()
        before: TextIO = sys.stdout
        sys.stdout = self._printed
        try:
            return self._done(operation, target, arguments, named)
        finally:
            if sys.stdout is self._printed:
                sys.stdout = before

    def _done(self, operation: str, target: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> object:
        if operation == "get":
            return self._name(arguments[0])
        if operation == "names":
            names = self._module.__dict__
            return list(names.get("__all__") or (name for name in names if not name.startswith("_")))
        found = self.peer.object_of(target)
        match operation:
            case "call":
                made = found(*arguments, **named)
                if isinstance(found, type):
                    self.peer.export(made)  # what the script made is an object to it, whatever it derives from
                return made
            case "method":
                return getattr(found, arguments[0])(*arguments[1:], **named)
            case "attribute":
                return getattr(found, arguments[0])
            case "set":
                setattr(found, arguments[0], arguments[1])
                return None
            case "delete":
                delattr(found, arguments[0])
                return None
            case "special":
                return getattr(type(found), arguments[0])(found, *arguments[1:], **named)
            case "data":
                return self.peer.data_of(found)
            case "members":
                return list(found)
            case "item":
                return found[arguments[0]]
            case "await":
                return self._until_done(found)
        raise ValueError(operation)

    def _until_done(self, found: Any) -> object:
        import asyncio  # rarely needed, and slow to import

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(_awaited(found))

    def _name(self, name: str) -> object:
        names = self._module.__dict__
        if name not in names or name in _OWN:
            raise NameError(f"name {name!r} is not defined")
        return names[name]

    def _with_streams(self, around: Any, work: Callable[[], object]) -> object:
        """With the input that the script has put in the place of the usual one."""
        text, ask = around
        before, builtin = sys.stdin, builtins.input
        given = io.StringIO(text)
        if text is not None:
            sys.stdin = given
        if ask is not None:
            builtins.input = ask
        try:
            return work()
        finally:
            sys.stdin, builtins.input = before, builtin
            self._read = given.tell()

    def _used(self) -> object:
        text = self._printed.getvalue() if self._printed is not None else ""
        used = (text, self._read) if text or self._read else None
        self._printed, self._read = None, 0
        return used


async def _awaited(value: Any) -> object:
    return await value


def reader(file: BinaryIO) -> Callable[[], str]:
    """Reads the lines of a pipe; an empty one is its end."""
    return lambda: file.readline().decode("ascii").rstrip("\n")


def writer(descriptor: int) -> Callable[[str], None]:
    """Writes a line to a pipe."""
    write = os.write

    def send(line: str) -> None:
        data = line.encode("ascii") + b"\n"
        while data:
            data = data[write(descriptor, data) :]

    return send
