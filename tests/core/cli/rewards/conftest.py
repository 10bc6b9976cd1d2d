"""What the commands are given: a plugin file with rewards, and a data file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.plugins.installed import write_plugin

PLUGIN = """
    from grpo_core.api import RewardSpec, hookimpl
    from pydantic import BaseModel, ConfigDict

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")
        answer: str = "yes"

    def make(options, context):
        def agrees(completions, **columns):
            return [float(text == options.answer) for text in completions]
        return agrees

    @hookimpl
    def grpo_reward_functions():
        yield RewardSpec(
            name="agrees",
            summary="1.0 for [yes]",
            target=f"{__file__}:make",
            options=f"{__file__}:Options",
            aliases=("consents",),
            tasks=("polls",),
            runs_in="worker",
            budget_s=2.5,
        )
        yield RewardSpec(name="heavy", summary="Needs more", target="nowhere.at:all", requires=("no-such-engine>=3",))
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    return str(write_plugin(tmp_path, PLUGIN, name="polls.py"))


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(f'{{"query": "Six times {n}?", "solution": {6 * n}}}\n' for n in range(1, 9)), encoding="utf-8"
    )
    return str(file)
