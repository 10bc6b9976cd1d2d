"""Distributions as pip leaves them, made of their metadata and one module: quick to write, found like real ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

ONE_REWARD = """
    from grpo_core.api import RewardSpec, hookimpl

    @hookimpl
    def grpo_reward_functions():
        yield RewardSpec(name="{reward}", summary="A reward", target="nowhere.rewards:{reward}")
"""


def one_reward(reward: str) -> str:
    """The source of a plugin that registers one reward."""
    return ONE_REWARD.format(reward=reward)


def install(
    folder: Path,
    name: str,
    source: str | None = None,
    *,
    module: str | None = None,
    version: str = "1.0",
    group: str = "grpo_core.v1",
    requires: Sequence[str] = (),
) -> str:
    """Put a distribution into `folder`, which must be on `sys.path`; gives the name of its module."""
    module = module or name.replace("-", "_").replace(".", "_").lower()
    if source is not None:
        (folder / f"{module}.py").write_text(dedent(source), encoding="utf-8")
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\nname-of-plugin = {module}\n", encoding="utf-8")
    return module


def write_plugin(folder: Path, source: str, *, name: str = "watcher.py") -> Path:
    """Write a one-file plugin."""
    path = folder / name
    path.write_text(dedent(source), encoding="utf-8")
    return path
