"""A well-known name that nothing here registers says which package to install."""

from __future__ import annotations

import pytest

from grpo_core.cli.common import load_plugins
from grpo_core.errors import UnknownComponent
from grpo_core.plugins import elsewhere
from grpo_core.plugins.catalog import Catalog
from grpo_core.plugins.elsewhere import package_of
from grpo_core.plugins.specs import Kind, RewardSpec
from grpo_core.plugins.verdicts import Admitted, Quarantined

OWN = Admitted(
    distribution="grpo-core",
    version="1.0",
    specs=(RewardSpec(name="format_reward", summary="", target="acme.rewards:form"),),
)


@pytest.mark.parametrize(
    ("kind", "name", "package"),
    [
        ("reward", "math_reward", "grpo-rewards-math"),
        ("reward", "accuracy", "grpo-rewards-math"),
        ("reward", "code_reward", "grpo-rewards-code"),
        ("reward", "grpo-rewards-code/code", "grpo-rewards-code"),
        ("dataset", "code_basics", "grpo-rewards-code"),
        ("rollout", "vllm", "grpo-rollout-vllm"),
        ("dataset", "math_reward", None),
        ("reward", "acme/math_reward", None),
    ],
)
def test_a_package_is_known_by_kind_and_name(kind: Kind, name: str, package: str | None) -> None:
    assert package_of(kind, name) == package


def test_the_error_says_what_to_install() -> None:
    with pytest.raises(UnknownComponent, match="no plugin registers a reward 'math_reward'") as caught:
        Catalog([OWN]).get("reward", "math_reward")
    assert caught.value.hint is not None
    assert "It is in the package grpo-rewards-math: pip install grpo-rewards-math" in caught.value.hint


def test_a_package_that_is_here_and_broken_is_not_to_be_installed_again() -> None:
    broken = Quarantined(
        distribution="grpo-rewards-math",
        version="1.0",
        stage="import",
        reason="ImportError: no sympy",
        where="plugin.py:1",
    )
    with pytest.raises(UnknownComponent) as caught:
        Catalog([OWN], [broken]).get("reward", "math_reward")
    assert caught.value.hint is not None
    assert "pip install" not in caught.value.hint
    assert "no sympy" in caught.value.hint


def test_no_known_name_belongs_to_another_package_than_the_one_that_registers_it() -> None:
    entries = load_plugins(warn=False).catalog.entries()
    registered = {
        (entry.spec.kind, name): entry.distribution
        for entry in entries
        for name in (entry.spec.name, *entry.spec.aliases)
    }
    for package, kinds in elsewhere._NAMES.items():
        for kind, names in kinds.items():
            assert {registered.get((kind, name), package) for name in names} == {package}
