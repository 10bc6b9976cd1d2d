"""Each reward of ours ships cases, and passes them: all of a distribution that has a folder of cases."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grpo_core.cli.common import load_plugins
from grpo_core.cli.main import build_app
from grpo_core.plugins.catalog import Entry
from grpo_core.plugins.specs import RewardSpec
from grpo_core.trial.cases import read_cases, shipped_cases

MUST = ("grpo-core", "grpo-rewards-math")


def ships(entry: Entry) -> bool:
    """Whether the package of a reward has a folder of cases, or must have one."""
    assert isinstance(entry.spec, RewardSpec)
    package = entry.spec.target.partition(".")[0]
    found = find_spec(package) if package.isidentifier() else None
    folders = (found and found.submodule_search_locations) or ()
    return entry.distribution in MUST or any(Path(folder, "cases").is_dir() for folder in folders)


REWARDS = [entry for entry in load_plugins(warn=False).catalog.entries("reward") if ships(entry)]


@pytest.mark.parametrize("entry", REWARDS, ids=lambda entry: entry.spec.name)
def test_a_reward_of_ours_ships_cases_and_passes_them(entry) -> None:  # type: ignore[no-untyped-def]
    assert shipped_cases(entry.spec.target, entry.spec.name) is not None
    ran = CliRunner().invoke(build_app(), ["rewards", "test", entry.qualified_name, "--json"], catch_exceptions=False)
    facts = json.loads(ran.stdout)
    assert facts["failures"] == []
    assert (ran.exit_code, facts["failed"]) == (0, 0)


@pytest.mark.parametrize("entry", REWARDS, ids=lambda entry: entry.spec.name)
def test_its_cases_have_both_sides_and_a_reason(entry) -> None:  # type: ignore[no-untyped-def]
    file = shipped_cases(entry.spec.target, entry.spec.name)
    assert file is not None
    cases = read_cases(file)
    assert all(case.why or case.name for case in cases)
    assert len({score for case in cases for score in case.expected}) > 1
