from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core import __version__
from grpo_core.plugins.discover import discover, unknown_names
from grpo_core.plugins.verdicts import Candidate, Quarantined
from tests.core.plugins.installed import install


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def candidates(**arguments: list[str]) -> dict[str, Candidate]:
    return {found.distribution: found for found in discover(**arguments)[0]}


def ruled_out(**arguments: list[str]) -> dict[str, Quarantined]:
    return {found.distribution: found for found in discover(**arguments)[1]}


def test_core_itself_is_found_by_its_entry_point() -> None:
    core = candidates()["grpo-core"]
    assert core == Candidate(distribution="grpo-core", version=__version__, modules=("grpo_core.builtin",))


def test_a_distribution_is_known_by_its_canonical_name_whatever_its_entry_point_is_called(site: Path) -> None:
    install(site, "Grpo_Found.Well", module="found_well", version="2.1")
    install(site, "grpo-found-too")
    assert candidates()["grpo-found-well"].modules == ("found_well",)
    assert candidates()["grpo-found-well"].version == "2.1"
    assert candidates()["grpo-found-too"].modules == ("grpo_found_too",)


def test_nothing_is_imported(site: Path) -> None:
    install(site, "grpo-unimported", "raise AssertionError('imported')")
    assert "grpo-unimported" in candidates()


def test_plugins_are_sorted_by_name(site: Path) -> None:
    for name in ("grpo-z", "grpo-a"):
        install(site, name)
    names = list(candidates())
    assert names == sorted(names)


def test_a_distribution_that_is_there_twice_is_the_one_that_python_imports(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "grpo-twice", version="1.0")
    nearer = tmp_path / "nearer"
    nearer.mkdir()
    install(nearer, "grpo-twice", version="2.0")
    monkeypatch.syspath_prepend(nearer)
    assert [found.version for found in discover()[0] if found.distribution == "grpo-twice"] == ["2.0"]


def test_a_plugin_hidden_by_a_distribution_that_is_none_is_not_found(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "grpo-hidden")
    nearer = tmp_path / "nearer"
    nearer.mkdir()
    install(nearer, "grpo-hidden", group="console_scripts")
    monkeypatch.syspath_prepend(nearer)
    assert "grpo-hidden" not in candidates()


def test_a_plugin_for_other_hooks_is_ruled_out_without_an_import(site: Path) -> None:
    install(site, "grpo-later", "raise AssertionError('imported')", group="grpo_core.v2")
    verdict = ruled_out()["grpo-later"]
    assert verdict.stage == "api"
    assert verdict.reason == f"it is written for the hooks grpo_core.v2; grpo-core {__version__} has grpo_core.v1"
    assert verdict.hint == "Install a version of grpo-later for grpo_core.v1, or another grpo-core."
    assert "grpo-later" not in candidates()


def test_a_group_that_merely_begins_alike_is_none_of_ours(site: Path) -> None:
    install(site, "grpo-alike", group="grpo_core.versions")
    assert "grpo-alike" not in candidates()
    assert "grpo-alike" not in ruled_out()


@pytest.mark.parametrize("line", ["grpo-core>=99", "grpo_core <0.1", "grpo-core==0.0.1 ; python_version > '3'"])
def test_a_plugin_for_another_core_is_ruled_out(site: Path, line: str) -> None:
    install(site, "grpo-other", requires=["numpy>=1", line])
    verdict = ruled_out()["grpo-other"]
    assert verdict.stage == "version"
    assert verdict.reason.startswith("it needs grpo")
    assert verdict.reason.endswith(f"; this is grpo-core {__version__}")
    assert "pip install" in (verdict.hint or "")


def test_other_requirements_are_pips_business(site: Path) -> None:
    install(
        site,
        "grpo-fine",
        requires=["no-such-engine>=2", "not a requirement at all", "grpo-core>=99; extra == 'next'", "grpo-core>=0.1"],
    )
    assert "grpo-fine" in candidates()


def test_a_plugin_that_is_switched_off_is_not_a_candidate(site: Path) -> None:
    install(site, "grpo-off")
    assert ruled_out(disabled=["Grpo_Off"])["grpo-off"].stage == "blocked"
    assert "grpo-off" not in candidates(disabled=["Grpo_Off"])


def test_metadata_without_a_name_is_reported(site: Path) -> None:
    install(site, "grpo-nameless")
    (site / "grpo_nameless-1.0.dist-info" / "METADATA").unlink()
    verdict = ruled_out()["grpo_nameless"]
    assert (verdict.stage, verdict.version) == ("metadata", "?")
    assert verdict.reason == "its installed metadata cannot be read"
    assert "pip install --force-reinstall" in (verdict.hint or "")


def test_malformed_entry_points_are_reported(site: Path) -> None:
    install(site, "grpo-malformed")
    (site / "grpo_malformed-1.0.dist-info" / "entry_points.txt").write_text("[grpo_core.v1]\nno equals sign\n")
    assert ruled_out()["grpo-malformed"].stage == "metadata"


def test_a_folder_that_is_called_differently_from_its_distribution_is_found(site: Path) -> None:
    install(site, "grpo-renamed")
    (site / "grpo_renamed-1.0.dist-info").rename(site / "something_else-1.0.dist-info")
    assert "grpo-renamed" in candidates()


def test_a_name_to_switch_off_that_nothing_has_gets_the_nearest_match() -> None:
    known = ["grpo-core", "grpo-rewards-math"]
    assert unknown_names(["Grpo_Rewards.Math"], known) == []
    assert unknown_names(["grpo-reward-math"], known) == [
        "no plugin 'grpo-reward-math' to switch off; did you mean 'grpo-rewards-math'?"
    ]
    assert unknown_names(["zzz"], known) == [
        "no plugin 'zzz' to switch off; installed plugins: grpo-core, grpo-rewards-math"
    ]


@pytest.mark.parametrize(
    "group", ["grpo_core", "grpo-core.v1", "grpocore.v1", "grpo_core_v1", "GRPO_CORE.V1", "grpo_cor.v1"]
)
def test_a_group_that_is_nearly_ours_is_told(site: Path, group: str) -> None:
    install(site, "grpo-near", group=group)
    found = ruled_out()["grpo-near"]
    assert found.reason == f"its entry point is in the group '{group}'; plugins are found in 'grpo_core.v1' only"
    assert found.hint == 'Write [project.entry-points."grpo_core.v1"] in its pyproject.toml, and install it again.'
    assert ruled_out(disabled=["grpo-near"])["grpo-near"].stage == "blocked"


@pytest.mark.parametrize(
    "group", ["console_scripts", "pytest11", "grpo_rewards", "grpo_core_extensions.widgets", "g.v1"]
)
def test_a_group_of_something_else_is_left_alone(site: Path, group: str) -> None:
    install(site, "grpo-else", group=group)
    assert "grpo-else" not in {**ruled_out(), **candidates()}


def test_a_distribution_with_our_group_may_have_a_like_one_beside_it(site: Path) -> None:
    install(site, "grpo-with-both")
    info = site / "grpo_with_both-1.0.dist-info" / "entry_points.txt"
    info.write_text(info.read_text() + "[grpo_core]\nother = grpo_with_both\n")
    assert "grpo-with-both" in candidates()
