"""Installs every package of this folder for real, once a session, all of them together."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent

Grpoctl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip installed all of them into."""
    target = tmp_path_factory.mktemp("site")
    flags = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-build-isolation",
        "--no-index",
        "--no-deps",
        "--no-compile",
    ]
    packages = sorted(str(path.parent) for path in HERE.glob("*/pyproject.toml"))
    subprocess.run([sys.executable, "-m", "pip", "install", *flags, "--target", str(target), *packages], check=True)
    return target


def python_path(site: Path) -> str:
    """Where a process finds these packages, before what this one finds."""
    return os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def grpoctl(site: Path) -> Grpoctl:
    """Runs the command where they are installed."""

    def run(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRPO_")}
        return subprocess.run(
            [sys.executable, "-m", "grpo_core", *arguments],
            env={**inherited, "PYTHONPATH": python_path(site), "HF_HUB_OFFLINE": "1", **environment},
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
