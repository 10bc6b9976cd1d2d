"""The text that a bare interpreter is started with: `python -c TEXT DESCRIPTOR`.

It reads one message from the descriptor, a packet socket: sources of modules, which of them to run, and its
configuration. So nothing of this distribution need be readable, or even visible, where a sandbox starts.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import socket
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

_LARGEST_MESSAGE = 1 << 20


class _Sent(importlib.abc.Loader, importlib.abc.MetaPathFinder):
    def __init__(self, sources: dict[str, str | None]) -> None:
        self._sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self._sources:
            return importlib.util.spec_from_loader(name, self, is_package=self._sources[name] is None)
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        source = self._sources[module.__name__]
        if source is not None:
            exec(compile(source, f"<{module.__name__}>", "exec", dont_inherit=True), module.__dict__)  # noqa: S102


if __name__ == "__main__":
    line = socket.socket(fileno=int(sys.argv[1]))
    message = json.loads(line.recv(_LARGEST_MESSAGE))
    sys.meta_path.append(_Sent(message["sources"]))
    importlib.import_module(message["main"]).main(line, message["configuration"])
