"""Each reward of ours ships cases, and passes them: all of a distribution that has a folder of cases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grpo_core.cli.common import load_plugins
from grpo_core.cli.main import build_app
from grpo_core.cli.rewards_settings import reward_settings
from grpo_core.plugins.catalog import Entry
from grpo_core.plugins.specs import RewardSpec
from grpo_core.recipe.plan import PlannedReward
from grpo_core.recipe.resolve import plan_reward
from grpo_core.trial.cases import Case, read_cases, shipped_cases
from grpo_core.trial.testing import run_cases
from grpo_core.types import BuildContext, Outcome

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


@pytest.mark.parametrize(
    "entry", [entry for entry in REWARDS if entry.spec.scope == "sample"], ids=lambda entry: entry.spec.name
)
def test_a_reward_of_one_sample_scores_it_alike_alone_and_among_others(entry: Entry) -> None:
    """With several processes a group is cut anywhere: what a reward sees beside an answer must not change its score."""
    assert isinstance(entry.spec, RewardSpec)
    file = shipped_cases(entry.spec.target, entry.spec.name)
    assert file is not None
    recipe = reward_settings(entry.qualified_name, None)
    catalog = load_plugins(warn=False).catalog

    def planned(options: Mapping[str, Any]) -> PlannedReward:
        return plan_reward(recipe.rewards[0].model_copy(update={"options": options}), catalog=catalog)

    def outcomes(cases: Sequence[Case]) -> list[Outcome]:
        verdicts = run_cases(planned, cases, settings=recipe.scoring, context=BuildContext())
        return [verdict.outcome for verdict in verdicts]

    cases = read_cases(file)
    parts = [_part(case, [position]) for case in cases for position in range(len(case.texts))]
    backwards = [_part(case, [*range(len(case.texts))][::-1] * 2) for case in cases]
    alone, among = iter(outcomes(parts)), iter(outcomes(backwards))
    for case in cases:
        own = [next(alone) for _ in case.texts]
        assert [next(among) for _ in own * 2] == own[::-1] * 2, case.place


def _part(case: Case, positions: Sequence[int]) -> Case:
    """A case of these completions of a group."""
    ids = case.completion_ids
    return replace(
        case,
        texts=tuple(case.texts[position] for position in positions),
        expected=tuple(case.expected[position] for position in positions),
        completion_ids=None if ids is None else tuple(ids[position] for position in positions),
    )
