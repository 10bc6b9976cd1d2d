"""Wheels of some of the project's distributions, where nothing else of it can be imported."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Beside the CPU build of PyTorch torchvision needs a .pth file, and `-S`, which hides other distributions, reads none.
_LEFT_OUT = ("grpo", "__editable__", "torchvision")


def make_import_path(folder: Path, *distributions: str) -> str:
    """Build and unpack the wheels; what is in them, and other people's packages as they are installed here."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-build-isolation", "--no-index", "--no-deps"]
    sources = [str(ROOT / name) for name in distributions]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", str(folder / "built"), *sources], check=True)
    wheels = [str(path) for path in (folder / "built").glob("*.whl")]
    subprocess.run([*pip, "install", *offline, "--target", str(folder / "site"), *wheels], check=True)
    others = folder / "others"
    others.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(_LEFT_OUT) and path.suffix != ".pth":
            (others / path.name).symlink_to(path)
    return f"{folder / 'site'}{os.pathsep}{others}"


def grpoctl(import_path: str, folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the command with this import path and no other; what it said."""
    environment = {**os.environ, "PYTHONPATH": import_path, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-S", "-m", "grpo_core", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr
