"""Each reward of ours ships cases, and passes them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from grpo_core.cli.common import load_plugins
from grpo_core.cli.main import build_app
from grpo_core.trial.cases import read_cases, shipped_cases

OURS = ("grpo-core", "grpo-rewards-math")
REWARDS = [e for e in load_plugins(warn=False).catalog.entries("reward") if e.distribution in OURS]


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
