"""The built wheels, alone and outside the repository, give the same command and the same demo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = ("core", "plugins/grpo-rewards-math")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but what is in the wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    sources = [str(ROOT / name) for name in DISTRIBUTIONS]
    offline = ["--no-build-isolation", "--no-index", "--no-deps"]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", str(folder / "built"), *sources], check=True)
    wheels = [str(path) for path in (folder / "built").glob("*.whl")]
    subprocess.run([*pip, "install", *offline, "--target", str(folder / "site"), *wheels], check=True)
    return folder / "site"


def run(site: Path, folder: Path, *arguments: str) -> str:
    """Run Python in `folder` with the wheels in front of everything else."""
    environment = {**os.environ, "PYTHONPATH": str(site), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_comes_from_the_wheels(site: Path, tmp_path: Path) -> None:
    where = run(site, tmp_path, "-c", "import grpo_core, grpo_rewards_math; print(grpo_core.__file__)")
    assert Path(where.strip()).is_relative_to(site)
    listed = run(site, tmp_path, "-m", "grpo_core", "plugins", "list")
    assert "grpo-rewards-math" in listed


def test_the_demo_runs_from_the_wheels(site: Path, tmp_path: Path) -> None:
    small = ("--steps", "2", "--prompts-per-step", "4", "--eval-rows", "64", "--output", "run")
    said = run(site, tmp_path, "-m", "grpo_core", "train", "--recipe", "countdown-tiny", *small)
    assert "finished after 2 steps" in said
    assert (tmp_path / "run" / "final" / "model.safetensors").is_file()
