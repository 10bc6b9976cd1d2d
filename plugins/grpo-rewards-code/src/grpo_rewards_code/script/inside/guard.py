"""What a program may do with what a script gave it, and what a script may not do where no program sees it.

A function can be called, an object's public parts can be read, and set where its class is the script's. Nothing leads
from there to the rest of the script: no attribute of functions, classes, modules, generators or frames.

Place in the flow: program → peer → **guard** → object of the script.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from grpo_rewards_code.script.inside.describe import is_callable
from grpo_rewards_code.script.inside.stubs import SPECIALS, Unjudged

__all__ = ["Guarded", "refuse_files"]

_CLOSED = (
    type,
    types.ModuleType,
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
)
_OF_GENERATORS = ("send", "close", "throw")
_WRITES = os.O_WRONLY | os.O_RDWR


class Guarded:
    """Does what the program asks of the script's objects."""

    peer: Any

    def __call__(self, operation: str, target: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> object:
        found = self.peer.object_of(target)
        if operation == "call":
            return found(*arguments, **named)
        if operation == "await":
            raise TypeError("what a script awaits is not awaited by a program")
        name = arguments[0]
        if operation == "special":
            if name not in SPECIALS or isinstance(found, type) or (is_callable(found) and name != "__call__"):
                raise AttributeError(name)
            return getattr(type(found), name)(found, *arguments[1:], **named)
        self._check(found, name, operation)
        if operation == "method":
            return getattr(found, name)(*arguments[1:], **named)
        if operation == "attribute":
            return getattr(found, name)
        if operation == "set":
            setattr(found, name, arguments[1])
            return None
        raise AttributeError(name)

    @staticmethod
    def _check(found: Any, name: str, operation: str) -> None:
        closed = isinstance(found, _CLOSED) or is_callable(found)
        if isinstance(found, types.GeneratorType) and operation == "method" and name in _OF_GENERATORS:
            closed = False
        if closed or name.startswith("_"):
            raise AttributeError(f"{type(found).__name__!r} object has no attribute {name!r}")


def refuse_files() -> None:
    """From now on a file that is written ends the script: the program could not see it."""

    def look(event: str, details: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(details[0], str | bytes) and len(details) > 2:
            mode, flags = details[1], details[2]
            if (isinstance(flags, int) and flags & _WRITES) or (isinstance(mode, str) and set(mode) & set("wax+")):
                raise Unjudged("its tests write files, and the program has a folder of its own")
        elif event in ("os.mkdir", "shutil.copyfile"):
            raise Unjudged("its tests write files, and the program has a folder of its own")

    sys.addaudithook(look)
