from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.plugins.scope import scope_of
from tests.core.plugins.installed import install


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def tiers(owner: str, *required: str) -> list[set[str]]:
    return [set(tier) for tier in scope_of(owner, required).tiers]


def test_a_scope_is_the_distribution_then_what_it_requires_and_what_that_requires_then_core(site: Path) -> None:
    install(site, "grpo-scope-far", requires=("grpo-core",))
    install(site, "grpo-scope-near", requires=("Grpo.Scope.Far>=1", "grpo-core>=0.1"))
    install(site, "grpo-scope-own", requires=("grpo-scope-near", "grpo-core"))
    install(site, "grpo-scope-other")
    own, required, core = tiers("Grpo_Scope.Own")
    assert (own, core) == ({"grpo-scope-own"}, {"grpo-core"})
    assert {"grpo-scope-near", "grpo-scope-far"} <= required
    assert required.isdisjoint({"grpo-scope-other", "grpo-core", "grpo-scope-own"})


def test_what_the_recipe_requires_counts_as_well(site: Path) -> None:
    install(site, "grpo-scope-a", requires=("grpo-scope-b; python_version > '3'", "not a requirement!"))
    assert {"grpo-scope-a", "grpo-scope-b"} <= tiers("mine.py", "grpo-scope-a>=0.1", "][")[1]


def test_requirements_that_require_each_other_end(site: Path) -> None:
    install(site, "grpo-scope-x", requires=("grpo-scope-y",))
    install(site, "grpo-scope-y", requires=("grpo-scope-x",))
    assert tiers("grpo-scope-x") == [{"grpo-scope-x"}, {"grpo-scope-y"}, {"grpo-core"}]


def test_extras_count_for_the_distribution_itself_and_elsewhere_where_they_are_asked_for(site: Path) -> None:
    extra = "grpo-scope-engine; extra == 'engine'"
    install(site, "grpo-scope-with", requires=(extra,))
    install(site, "grpo-scope-asks", requires=("grpo-scope-with[engine]",))
    install(site, "grpo-scope-does-not", requires=("grpo-scope-with",))
    assert tiers("grpo-scope-with")[1] == {"grpo-scope-engine"}
    assert tiers("grpo-scope-asks")[1] == {"grpo-scope-with", "grpo-scope-engine"}
    assert tiers("grpo-scope-does-not")[1] == {"grpo-scope-with"}


def test_a_requirement_of_another_system_does_not_count(site: Path) -> None:
    install(site, "grpo-scope-system", requires=("grpo-scope-elsewhere; sys_platform == 'nowhere'",))
    assert tiers("grpo-scope-system")[1] == set()
