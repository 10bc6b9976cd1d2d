from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.plugins.namespace import namespace_of
from tests.core.plugins.installed import install


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def tiers(owner: str, *required: str) -> list[set[str]]:
    return [set(tier) for tier in namespace_of(owner, required).tiers]


def test_a_namespace_is_the_distribution_then_what_it_requires_and_what_that_requires_then_core(site: Path) -> None:
    install(site, "grpo-namespace-far", requires=("grpo-core",))
    install(site, "grpo-namespace-near", requires=("Grpo.Namespace.Far>=1", "grpo-core>=0.1"))
    install(site, "grpo-namespace-own", requires=("grpo-namespace-near", "grpo-core"))
    install(site, "grpo-namespace-other")
    own, required, core = tiers("Grpo_Namespace.Own")
    assert (own, core) == ({"grpo-namespace-own"}, {"grpo-core"})
    assert {"grpo-namespace-near", "grpo-namespace-far"} <= required
    assert required.isdisjoint({"grpo-namespace-other", "grpo-core", "grpo-namespace-own"})


def test_what_the_recipe_requires_counts_as_well(site: Path) -> None:
    install(site, "grpo-namespace-a", requires=("grpo-namespace-b; python_version > '3'", "not a requirement!"))
    assert {"grpo-namespace-a", "grpo-namespace-b"} <= tiers("mine.py", "grpo-namespace-a>=0.1", "][")[1]


def test_requirements_that_require_each_other_end(site: Path) -> None:
    install(site, "grpo-namespace-x", requires=("grpo-namespace-y",))
    install(site, "grpo-namespace-y", requires=("grpo-namespace-x",))
    assert tiers("grpo-namespace-x") == [{"grpo-namespace-x"}, {"grpo-namespace-y"}, {"grpo-core"}]


def test_extras_count_for_the_distribution_itself_and_elsewhere_where_they_are_asked_for(site: Path) -> None:
    extra = "grpo-namespace-engine; extra == 'engine'"
    install(site, "grpo-namespace-with", requires=(extra,))
    install(site, "grpo-namespace-asks", requires=("grpo-namespace-with[engine]",))
    install(site, "grpo-namespace-does-not", requires=("grpo-namespace-with",))
    assert tiers("grpo-namespace-with")[1] == {"grpo-namespace-engine"}
    assert tiers("grpo-namespace-asks")[1] == {"grpo-namespace-with", "grpo-namespace-engine"}
    assert tiers("grpo-namespace-does-not")[1] == {"grpo-namespace-with"}


def test_a_requirement_of_another_system_does_not_count(site: Path) -> None:
    install(site, "grpo-namespace-system", requires=("grpo-namespace-elsewhere; sys_platform == 'nowhere'",))
    assert tiers("grpo-namespace-system")[1] == set()
