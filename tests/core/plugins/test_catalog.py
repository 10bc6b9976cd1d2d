from __future__ import annotations

import pytest

from grpo_core.errors import AmbiguousComponent, UnknownComponent
from grpo_core.plugins.catalog import Catalog, missing_requirements
from grpo_core.plugins.namespace import Namespace
from grpo_core.plugins.specs import ComponentSpec, DatasetSpec, RecipeSpec, RewardSpec, RolloutSpec
from grpo_core.plugins.verdicts import Admitted, Quarantined


def reward(name: str, *aliases: str) -> RewardSpec:
    return RewardSpec(name=name, summary="A reward", target=f"acme.rewards:{name}", aliases=aliases)


def dataset(name: str, *hub_ids: str) -> DatasetSpec:
    return DatasetSpec(name=name, summary="A dataset", target=f"acme.data:{name}", hub_ids=hub_ids)


def plugin(distribution: str, *specs: ComponentSpec | RecipeSpec) -> Admitted:
    return Admitted(distribution=distribution, version="1.0", specs=specs)


BROKEN = Quarantined(
    distribution="grpo-broken",
    version="1.2",
    stage="import",
    reason="ModuleNotFoundError: No module named 'sympy'",
    where="grpo_broken/plugin.py:3",
)

CATALOG = Catalog(
    [
        plugin("grpo-core", reward("format_reward", "format"), reward("length")),
        plugin("grpo-acme", reward("length"), reward("brevity", "format"), dataset("sums", "Acme/Sums")),
        plugin("mine.py", reward("my_reward")),
    ],
    [BROKEN],
)


@pytest.mark.parametrize(
    ("name", "qualified"),
    [
        ("format_reward", "grpo-core/format_reward"),
        ("grpo-core/format", "grpo-core/format_reward"),
        ("grpo-acme/format", "grpo-acme/brevity"),
        ("Grpo_Acme/length", "grpo-acme/length"),
        ("mine.py/my_reward", "mine.py/my_reward"),
    ],
)
def test_a_component_is_found_by_name_alias_and_qualified_name(name: str, qualified: str) -> None:
    assert CATALOG.get("reward", name).qualified_name == qualified


def test_an_entry_says_who_provides_it() -> None:
    entry = CATALOG.get("dataset", "sums")
    assert (entry.distribution, entry.version, entry.spec.name) == ("grpo-acme", "1.0", "sums")


def test_a_name_that_two_plugins_share_is_an_error_when_it_is_used() -> None:
    with pytest.raises(AmbiguousComponent, match="several plugins register a reward 'length'") as caught:
        CATALOG.get("reward", "length")
    assert caught.value.hint == "Write grpo-acme/length or grpo-core/length."
    assert caught.value.exit_code == 3


def test_an_alias_that_two_plugins_share_is_an_error_too() -> None:
    with pytest.raises(AmbiguousComponent) as caught:
        CATALOG.get("reward", "format")
    assert caught.value.hint == "Write grpo-acme/brevity or grpo-core/format_reward."


def test_shared_names_are_listed() -> None:
    assert CATALOG.clashes() == {
        ("reward", "format"): ("grpo-acme/brevity", "grpo-core/format_reward"),
        ("reward", "length"): ("grpo-acme/length", "grpo-core/length"),
    }
    assert CATALOG.names("reward") == (
        "brevity",
        "format_reward",
        "grpo-acme/length",
        "grpo-core/length",
        "my_reward",
    )


def test_an_unknown_name_gets_near_ones_the_known_ones_and_the_plugins_that_were_not_searched() -> None:
    with pytest.raises(UnknownComponent, match="no plugin registers a reward 'brevty'") as caught:
        CATALOG.get("reward", "brevty")
    hint = caught.value.hint or ""
    assert "Did you mean 'brevity'?" in hint
    assert "Known: brevity, format_reward, " in hint
    assert (
        "Not loaded, so not searched: "
        "grpo-broken 1.2: ModuleNotFoundError: No module named 'sympy' (grpo_broken/plugin.py:3)."
    ) in hint


def test_an_unknown_name_that_another_kind_has_says_so() -> None:
    with pytest.raises(UnknownComponent) as caught:
        CATALOG.get("reward", "sums")
    assert "There is a dataset of this name." in (caught.value.hint or "")
    with pytest.raises(UnknownComponent, match="no plugin registers a trainer 'sums'") as caught:
        CATALOG.get("trainer", "sums")
    assert "Known: none." in (caught.value.hint or "")


def test_an_unknown_owner_may_be_one_of_a_hub_but_a_known_plugin_may_not() -> None:
    assert CATALOG.find("dataset", "openai/gsm8k") is None
    found = CATALOG.find("dataset", "grpo-acme/sums")
    assert found is not None
    assert found.spec.name == "sums"
    for name in ("grpo-acme/products", "grpo-broken/sums", "products"):
        with pytest.raises(UnknownComponent):
            CATALOG.find("dataset", name)


def test_a_dataset_is_found_by_a_hub_id_whatever_its_case() -> None:
    found = CATALOG.for_hub_id("acme/sums")
    assert found is not None
    assert found.spec.name == "sums"
    assert CATALOG.for_hub_id("acme/other") is None


def test_a_hub_id_that_two_plugins_claim_is_an_error_when_it_is_used() -> None:
    catalog = Catalog([plugin("grpo-one", dataset("a", "x/y")), plugin("grpo-two", dataset("b", "x/y"))])
    with pytest.raises(AmbiguousComponent, match="several plugins understand the rows of 'x/y'") as caught:
        catalog.for_hub_id("x/y")
    assert caught.value.hint == "Choose with `dataset.preprocess`: grpo-one/a or grpo-two/b."


def test_requirements_are_met_by_metadata_and_by_one_alternative() -> None:
    spec = RolloutSpec(
        name="engine",
        summary="An engine",
        target="acme:make",
        requires=(
            "pluggy>=1",
            "pluggy>=99",
            "no-such-engine>=2 | pluggy",
            "no-such-engine | pluggy<1",
            "no-such-engine; python_version < '3'",
        ),
    )
    assert missing_requirements(spec) == ["pluggy>=99", "no-such-engine | pluggy<1"]


def test_a_recipe_requires_nothing() -> None:
    assert missing_requirements(RecipeSpec(name="a", summary="A recipe", package="acme", path="a.yaml")) == []


def seen_by(*tiers: str) -> Namespace:
    return Namespace(tuple(frozenset(tier.split()) for tier in tiers))


@pytest.mark.parametrize(
    ("namespace", "meant"),
    [
        (seen_by("grpo-acme", "", "grpo-core"), "grpo-acme/length"),
        (seen_by("grpo-recipes", "grpo-acme", "grpo-core"), "grpo-acme/length"),
        (seen_by("grpo-recipes", "", "grpo-core"), "grpo-core/length"),
    ],
)
def test_in_a_namespace_a_shared_name_is_the_nearest_plugins(namespace: Namespace, meant: str) -> None:
    assert CATALOG.within(namespace).get("reward", "length").qualified_name == meant
    assert CATALOG.within(namespace).get("reward", "grpo-core/length").qualified_name == "grpo-core/length"


def test_in_a_namespace_a_name_that_only_others_have_is_theirs() -> None:
    assert CATALOG.within(seen_by("grpo-core")).get("reward", "my_reward").qualified_name == "mine.py/my_reward"


def test_in_a_namespace_two_that_are_equally_near_clash_and_outside_it_nothing_changed() -> None:
    with pytest.raises(AmbiguousComponent):
        CATALOG.within(seen_by("grpo-recipes", "grpo-acme grpo-core")).get("reward", "length")
    with pytest.raises(AmbiguousComponent):
        CATALOG.get("reward", "length")
    with pytest.raises(AmbiguousComponent):
        CATALOG.within(None).get("reward", "length")


def test_in_a_namespace_rows_of_a_hub_are_understood_by_those_in_it_alone() -> None:
    catalog = Catalog([plugin("one", dataset("sums", "a/b")), plugin("two", dataset("more", "a/b"))])
    with pytest.raises(AmbiguousComponent):
        catalog.for_hub_id("a/b")
    found = catalog.within(seen_by("two", "one")).for_hub_id("A/B")
    assert found is not None
    assert found.qualified_name == "two/more"
    assert catalog.within(seen_by("grpo-core")).for_hub_id("a/b") is None
