from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from grpo_core.cli.main import build_app
from tests.core.plugins.installed import install, one_reward, write_plugin

FULL = """
    from grpo_core.api import RewardSpec, hookimpl
    from pydantic import BaseModel, ConfigDict, Field
    from typing import Literal

    class Limits(BaseModel):
        model_config = ConfigDict(extra="forbid")
        limit: int = Field(default=200, ge=1, le=500, description="The most characters.")
        mode: Literal["soft", "hard"] = Field(default="hard", description="How it ends.")
        floor: float | None = Field(default=None, description="The least score.")
        unit: str = Field(description="What is counted.")

    @hookimpl
    def grpo_reward_functions():
        yield RewardSpec(
            name="brevity",
            summary="1.0 for [short] answers",
            target=f"{__file__}:make",
            options=f"{__file__}:Limits",
            requires=("pluggy>=1", "no-such-engine>=2 | other-engine"),
            aliases=("short",),
            tasks=("chat", "code"),
        )
        yield RewardSpec(name="lost", summary="Options that cannot be had", target=f"{__file__}:f", options="no_mod:X")
        yield RewardSpec(name="odd", summary="Options of the wrong kind", target=f"{__file__}:f", options="json:dumps")

    @hookimpl
    def grpo_step_finished(report):
        pass
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delenv("GRPO_DISABLE_PLUGINS", raising=False)
    monkeypatch.delenv("GRPO_STRICT_PLUGINS", raising=False)
    return folder


@pytest.fixture
def full(tmp_path: Path) -> str:
    return str(write_plugin(tmp_path, FULL, name="full.py"))


def plugins(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["plugins", *arguments], catch_exceptions=False)


def lines(result: Result) -> list[str]:
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_the_list_has_each_plugin_with_its_state_and_components(site: Path, full: str) -> None:
    install(site, "grpo-cli-bad", "\n1 / 0", version="1.2")
    install(site, "grpo-cli-off", one_reward("cli_off"))
    result = CliRunner(env={"GRPO_DISABLE_PLUGINS": "grpo-cli-off"}).invoke(
        build_app(), ["plugins", "list", "--plugin", full]
    )
    assert result.exit_code == 0
    listed = lines(result)
    assert listed[0] == "plugin version status provides"
    assert "full.py (file) loaded reward: brevity, lost, odd; watches runs" in listed
    assert "grpo-cli-bad 1.2 not loaded ZeroDivisionError: division by zero (grpo_cli_bad.py:2)" in listed
    assert "grpo-cli-off 1.0 switched off" in listed
    assert any(line.startswith("grpo-core ") and "trainer: torch" in line for line in listed)
    assert result.stderr.startswith("grpo-cli-bad 1.2 is not loaded: ZeroDivisionError")


def test_the_list_marks_names_that_several_plugins_share(site: Path) -> None:
    for name in ("grpo-cli-one", "grpo-cli-two"):
        install(site, name, one_reward("cli_shared"))
    result = plugins("list")
    assert (
        "several plugins register a reward 'cli_shared': write grpo-cli-one/cli_shared or grpo-cli-two/cli_shared"
        in lines(result)
    )
    clashes = json.loads(plugins("list", "--json").stdout)["clashes"]
    assert clashes == [
        {"kind": "reward", "name": "cli_shared", "write": ["grpo-cli-one/cli_shared", "grpo-cli-two/cli_shared"]}
    ]


def test_the_list_as_json_says_everything(site: Path, full: str) -> None:
    install(site, "grpo-cli-worse", "1 / 0")
    listed = {
        each["distribution"]: each for each in json.loads(plugins("list", "--json", "--plugin", full).stdout)["plugins"]
    }
    assert listed["full.py"]["status"] == "loaded"
    assert listed["full.py"]["observes"] is True
    assert listed["full.py"]["components"][0] == {
        "kind": "reward",
        "name": "brevity",
        "summary": "1.0 for [short] answers",
    }
    broken = listed["grpo-cli-worse"]
    assert (broken["status"], broken["stage"], broken["where"]) == ("not loaded", "import", "grpo_cli_worse.py:1")
    assert "ZeroDivisionError" in broken["traceback"]


def test_a_component_is_shown_with_its_options_and_what_it_needs(full: str) -> None:
    result = plugins("show", "short", "--plugin", full)
    assert result.exit_code == 0
    shown = lines(result)
    assert shown[:2] == ["reward full.py/brevity (file)", "1.0 for [short] answers"]
    assert "other names short" in shown
    assert "requires pluggy>=1 installed" in shown
    assert "requires no-such-engine>=2 | other-engine missing" in shown
    assert "tasks chat, code" in shown
    assert "option type default meaning" in shown
    assert "limit integer ≥ 1 ≤ 500 200 The most characters." in shown
    assert "mode soft | hard hard How it ends." in shown
    assert "floor number | null null The least score." in shown
    assert "unit string required What is counted." in shown


def test_a_component_as_json_has_the_schema_of_its_options(full: str) -> None:
    (shown,) = json.loads(plugins("show", "full.py/brevity", "--json", "--plugin", full).stdout)
    assert (shown["kind"], shown["qualified_name"], shown["tasks"]) == ("reward", "full.py/brevity", ["chat", "code"])
    assert shown["missing_requirements"] == ["no-such-engine>=2 | other-engine"]
    assert shown["options_schema"]["properties"]["limit"]["maximum"] == 500


def test_options_that_cannot_be_had_say_why(full: str) -> None:
    shown = plugins("show", "lost", "--plugin", full)
    assert shown.exit_code == 0
    assert "Its options cannot be shown: there is no module 'no_mod'" in lines(shown)
    assert "Its options cannot be shown: 'json:dumps' is not a pydantic model" in lines(
        plugins("show", "odd", "--plugin", full)
    )
    (facts,) = json.loads(plugins("show", "lost", "--json", "--plugin", full).stdout)
    assert facts["options_error"] == "there is no module 'no_mod'"


def test_components_of_several_kinds_with_one_name_are_all_shown() -> None:
    kinds = [each["kind"] for each in json.loads(plugins("show", "countdown", "--json").stdout)]
    assert {"dataset", "reward"} <= set(kinds)


def test_a_backend_shows_its_capabilities() -> None:
    assert "capabilities images, weights:shared, weights:stream" in lines(plugins("show", "grpo-core/transformers"))


def test_a_plugin_is_shown_with_its_components(full: str) -> None:
    result = plugins("show", "full.py", "--plugin", full)
    shown = lines(result)
    assert shown[:2] == ["full.py (file) loaded", "It watches runs."]
    assert (
        "reward brevity short 1.0 for [short] answers; needs no-such-engine>=2 | other-engine, which is not installed"
        in shown
    )
    assert json.loads(plugins("show", "full.py", "--json", "--plugin", full).stdout)["observes"] is True


def test_a_plugin_that_is_not_loaded_is_shown_with_its_fault(site: Path) -> None:
    install(site, "grpo-cli-fault", "1 / 0")
    assert "stage import" in lines(plugins("show", "Grpo_Cli.Fault"))


def test_a_healthy_environment_has_nothing_to_report(site: Path) -> None:
    result = plugins("doctor", "grpo-core")
    assert (result.exit_code, lines(result)) == (0, ["loaded: grpo-core"])


def test_the_doctor_shows_stage_reason_place_hint_and_traceback_and_ends_with_3(site: Path) -> None:
    install(site, "grpo-cli-sick", "\nimport nothing_of_this_name\n")
    result = plugins("doctor")
    assert result.exit_code == 3
    shown = lines(result)
    for line in (
        "grpo-cli-sick 1.0 not loaded",
        "stage import",
        "reason ModuleNotFoundError: No module named 'nothing_of_this_name'",
        "where grpo_cli_sick.py:2",
        "what to do Install what it needs: the module 'nothing_of_this_name' is not there.",
        "import nothing_of_this_name",
    ):
        assert line in shown
    assert result.stderr == ""
    assert plugins("doctor", "grpo-core").exit_code == 0
    as_json = plugins("doctor", "grpo-cli-sick", "--json")
    assert as_json.exit_code == 3
    assert json.loads(as_json.stdout)[0]["stage"] == "import"


def test_the_doctor_names_what_components_lack(full: str) -> None:
    assert "full.py/brevity cannot be used: it needs no-such-engine>=2 | other-engine" in lines(
        plugins("doctor", "full.py", "--plugin", full)
    )


def test_a_plugin_that_is_switched_off_is_not_sick(site: Path) -> None:
    install(site, "grpo-cli-idle", "1 / 0")
    result = CliRunner(env={"GRPO_DISABLE_PLUGINS": "grpo-cli-idle"}).invoke(
        build_app(), ["plugins", "doctor", "grpo-cli-idle"]
    )
    assert result.exit_code == 0
    assert "reason switched off" in lines(result)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    from grpo_core.errors import PluginError

    with pytest.raises(PluginError, match="there is no plugin or component 'countdwn'") as caught:
        plugins("show", "countdwn")
    assert "'countdown'" in (caught.value.hint or "")
    with pytest.raises(PluginError, match="there is no plugin 'grpo-cor'") as caught:
        plugins("doctor", "grpo-cor")
    assert caught.value.hint == "Did you mean 'grpo-core'?"
    with pytest.raises(PluginError) as caught:
        plugins("doctor", "zzzzzz")
    assert caught.value.hint == "`grpoctl plugins list` shows what there is."


UNSOUND = """
    import os
    from grpo_core.api import (
        DatasetSpec, RecipeSpec, RewardSpec, RolloutSpec, TrackerSpec, TrainerSpec, hookimpl
    )

    if os.environ.get("NEVER"):
        import torch

    @hookimpl
    def grpo_reward_functions():
        yield RewardSpec(name="lost", summary="s", target="grpo_nowhere.rewards:lost")
        yield RewardSpec(name="renamed", summary="s", target=f"{__file__}:renamd")
        yield RewardSpec(name="sound", summary="s", target=f"{__file__}:sound")

    @hookimpl
    def grpo_dataset_preprocessors():
        yield DatasetSpec(name="rows", summary="s", target=f"{__file__}:sound", source="grpo_nowhere.data:rows")

    @hookimpl
    def grpo_rollout_backends():
        yield RolloutSpec(name="engine", summary="s", target=f"{__file__}:sound", serve=f"{__file__}:serve")

    @hookimpl
    def grpo_trackers():
        yield TrackerSpec(name="curves", summary="s", target=f"{__file__}:sound", options="json:dumps")

    @hookimpl
    def grpo_recipes():
        yield RecipeSpec(name="gone", summary="s", package="grpo_core", path="recipes/gone.yaml")

    def sound(completions):
        return [0.0 for _ in completions]
"""


def test_the_doctor_finds_what_a_loaded_plugin_registers_and_does_not_have(site: Path, tmp_path: Path) -> None:
    file = write_plugin(tmp_path, UNSOUND, name="unsound.py")
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "sound.jsonl").write_text('{"completion": "a", "expected": "high"}\n')
    result = plugins("doctor", "unsound.py", "--plugin", str(file))
    assert result.exit_code == 3
    told = [line.removeprefix("unsound.py: ") for line in lines(result) if line.startswith("unsound.py: ")]
    beginnings = [
        "its module",
        "dataset rows: its source: there is no module 'grpo_nowhere'",
        "recipe gone: its file: 'unsound.py/gone' registers a recipe file that is not there: recipes/gone.yaml",
        "reward lost: its target: there is no module 'grpo_nowhere'",
        "reward renamed: its target: file",
        "reward sound: its cases: ",
        "rollout engine: its serve: file",
        "tracker curves: its options: 'json:dumps' is not a pydantic model",
    ]
    assert len(told) == len(beginnings), told
    for beginning in beginnings:
        assert any(line.startswith(beginning) for line in told), (beginning, told)
    assert f"imports torch ({file}:" in told[0] or "imports torch (unsound.py:" in told[0]
    (facts,) = json.loads(plugins("doctor", "unsound.py", "--plugin", str(file), "--json").stdout)
    assert (facts["status"], len(facts["faults"])) == ("loaded", len(told))


def test_every_installed_plugin_has_what_it_registers() -> None:
    result = plugins("doctor", "--json")
    assert {each["distribution"]: each["faults"] for each in json.loads(result.stdout) if each.get("faults")} == {}


def test_a_distribution_whose_group_is_nearly_ours_is_listed_and_told_by_the_doctor(site: Path) -> None:
    install(site, "grpo-cli-near", one_reward("cli_near"), group="grpo_core")
    reason = "its entry point is in the group 'grpo_core'; plugins are found in 'grpo_core.v1' only"
    listed = {each["distribution"]: each for each in json.loads(plugins("list", "--json").stdout)["plugins"]}
    assert (listed["grpo-cli-near"]["status"], listed["grpo-cli-near"]["reason"]) == ("not loaded", reason)
    assert f"reason {reason}" in lines(plugins("doctor", "grpo-cli-near"))
