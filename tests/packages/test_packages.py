"""Broken distributions, all installed at once: each costs its one line, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grpo_core import __version__
from tests.integration.runs import make_workplace
from tests.packages.conftest import HERE, Grpoctl, python_path

BROKEN = {
    "grpo-exits": ("import", "it calls sys.exit(7) (grpo_exits/plugin.py:5)"),
    "grpo-future": (
        "api",
        f"it is written for the hooks grpo_core.v2; grpo-core {__version__} has grpo_core.v1",
    ),
    "grpo-import-error": (
        "import",
        "ModuleNotFoundError: No module named 'a_module_that_is_not_there' (grpo_import_error/plugin.py:3)",
    ),
    "grpo-misspelt": ("hooks", "'grpo_reward_function' is not a hook (grpo_misspelt/plugin.py:6)"),
    "grpo-needs-newer": ("version", f"it needs grpo-core>=99; this is grpo-core {__version__}"),
    "grpo-raises-late": ("register", "KeyError: 'second' (grpo_raises_late/plugin.py:10)"),
    "grpo-returns-none": ("register", "grpo_reward_functions returned None (grpo_returns_none/plugin.py:6)"),
    "grpo-undecorated": ("hooks", "grpo_reward_functions is not marked as a hook (grpo_undecorated/plugin.py:6)"),
    "grpo-wrong-spec": (
        "register",
        "grpo_reward_functions gave a DatasetSpec, not a RewardSpec (grpo_wrong_spec/plugin.py:6)",
    ),
}
"""Distribution -> its stage, and its reason and place."""
SOUND = (
    *("grpo-clash-one", "grpo-clash-two", "grpo-recipes-polite", "grpo-rewards-vowels"),
    *("grpo-twin-one", "grpo-twin-two"),
)


@pytest.fixture(scope="module")
def listing(grpoctl: Grpoctl) -> subprocess.CompletedProcess[str]:
    return grpoctl("plugins", "list", "--json")


@pytest.fixture(scope="module")
def diagnosis(grpoctl: Grpoctl) -> dict[str, Any]:
    done = grpoctl("plugins", "doctor", "--json")
    assert done.returncode == 3
    assert done.stderr == ""
    return {each["distribution"]: each for each in json.loads(done.stdout)}


def test_each_package_of_this_folder_is_accounted_for() -> None:
    assert {path.parent.name for path in HERE.glob("*/pyproject.toml")} == {*BROKEN, *SOUND}


def test_each_broken_package_costs_exactly_its_one_line(listing: subprocess.CompletedProcess[str]) -> None:
    assert listing.returncode == 0
    assert listing.stderr.splitlines() == [
        f"{name} 1.2 is not loaded: {reason}. Details: grpoctl plugins doctor {name}"
        for name, (_, reason) in sorted(BROKEN.items())
    ]


def test_everything_else_works_beside_them(listing: subprocess.CompletedProcess[str]) -> None:
    states = {each["distribution"]: each["status"] for each in json.loads(listing.stdout)["plugins"]}
    assert {name for name, state in states.items() if state == "not loaded"} == set(BROKEN)
    assert {name for name, state in states.items() if state == "loaded"} >= {"grpo-core", *SOUND}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_the_doctor_tells_stage_and_reason(name: str, diagnosis: dict[str, Any]) -> None:
    stage, reason = BROKEN[name]
    found = diagnosis[name]
    assert found["stage"] == stage
    assert reason == (f"{found['reason']} ({found['where']})" if found["where"] else found["reason"])
    assert found["hint"] or found["traceback"]


@pytest.mark.parametrize("name", ["grpo-exits", "grpo-import-error", "grpo-raises-late"])
def test_a_traceback_is_shown_from_the_packages_own_line(name: str, diagnosis: dict[str, Any]) -> None:
    first_frame = diagnosis[name]["traceback"].splitlines()[1]
    assert f"{name.replace('-', '_')}/plugin.py" in first_frame


def test_one_broken_package_can_be_asked_for(grpoctl: Grpoctl) -> None:
    done = grpoctl("plugins", "doctor", "grpo-exits")
    assert done.returncode == 3
    assert "grpo-exits 1.2" in done.stdout
    assert "it calls sys.exit(7)" in done.stdout
    assert "grpo-future" not in done.stdout


def test_strict_mode_stops_at_the_first_one(grpoctl: Grpoctl) -> None:
    done = grpoctl("plugins", "list", GRPO_STRICT_PLUGINS="1")
    assert done.returncode == 3
    assert done.stderr.startswith("error: grpo-exits 1.2 is not loaded: it calls sys.exit(7)")
    assert "SystemExit: 7" in done.stderr


def test_switching_them_off_silences_them(grpoctl: Grpoctl) -> None:
    done = grpoctl("plugins", "list", GRPO_DISABLE_PLUGINS=",".join(BROKEN))
    assert (done.returncode, done.stderr) == (0, "")
    assert grpoctl("plugins", "doctor", GRPO_DISABLE_PLUGINS=",".join(BROKEN)).returncode == 0


def test_two_packages_with_one_entry_point_name_both_work(grpoctl: Grpoctl, listing: Any) -> None:
    plugins = {each["distribution"]: each for each in json.loads(listing.stdout)["plugins"]}
    for package, reward in (("grpo-twin-one", "left_hand"), ("grpo-twin-two", "right_hand")):
        assert [component["name"] for component in plugins[package]["components"]] == [reward]


def test_two_packages_with_one_component_name_clash_only_when_it_is_used(grpoctl: Grpoctl, listing: Any) -> None:
    assert json.loads(listing.stdout)["clashes"] == [
        {"kind": "reward", "name": "politeness", "write": ["grpo-clash-one/politeness", "grpo-clash-two/politeness"]}
    ]


USE = """
import sys
from grpo_core.api import BuildContext, GrpoError
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.targets import build_target

try:
    spec = PluginHost.load().catalog.get("reward", sys.argv[1]).spec
    reward = build_target(spec.target, spec.options, {"scale": 2.0} if spec.options else {}, BuildContext())
    print(reward(completions=["aex", "123"]))
except GrpoError as error:
    print(error)
"""


def use(name: str, site: Path) -> str:
    """Build the reward of this name and call it, in a process of its own; what that printed."""
    environment = {**os.environ, "PYTHONPATH": python_path(site)}
    command = [sys.executable, "-c", USE, name]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("vowel_share", "[1.3333333333333333, None]"),
        ("grpo-rewards-vowels/vowels", "[1.3333333333333333, None]"),
        ("left_hand", "[1.0, 1.0]"),
        ("right_hand", "[1.0, 1.0]"),
        ("grpo-clash-one/politeness", "[1.0, 1.0]"),
        ("grpo-clash-two/politeness", "[2.0, 2.0]"),
        (
            "politeness",
            "several plugins register a reward 'politeness'\n"
            "  Write grpo-clash-one/politeness or grpo-clash-two/politeness.",
        ),
    ],
)
def test_a_reward_of_a_third_party_is_used_by_its_name(site: Path, name: str, printed: str) -> None:
    assert use(name, site) == printed


def test_a_name_that_a_broken_package_would_have_had_names_that_package(site: Path) -> None:
    printed = use("unreachable", site)
    assert "no plugin registers a reward 'unreachable'" in printed
    assert "Not loaded, so not searched: grpo-exits 1.2: it calls sys.exit(7)" in printed
    assert "grpo-import-error 1.2: ModuleNotFoundError" in printed


def test_a_third_partys_reward_trains_a_model_beside_all_the_broken_ones(tmp_path: Path, grpoctl: Grpoctl) -> None:
    work = make_workplace(tmp_path, rows=4)
    done = grpoctl(
        *("train", "--model", "./model", "--dataset", "rows.jsonl", "--output", "run"),
        *("--rewards", "vowels", "--set", "rewards.vowels.options.scale=3"),
        *("--steps", "1", "--prompts-per-step", "2", "--completions-per-prompt", "4", "--max-completion-tokens", "8"),
        cwd=work,
        OMP_NUM_THREADS="1",
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines() if "is not loaded" in line] == sorted(BROKEN)
    (planned,) = json.loads((work / "run" / "plan.json").read_text(encoding="utf-8"))["rewards"]
    assert planned["component"]["name"] == "grpo-rewards-vowels/vowel_share"
    assert planned["component"]["options"] == {"scale": 3.0}
    metrics = json.loads((work / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert f"rewards/{planned['name']}/mean" in metrics


def test_a_shared_name_is_refused_before_a_model_loads(tmp_path: Path, grpoctl: Grpoctl) -> None:
    (tmp_path / "rows.jsonl").write_text('{"query": "Say 1"}\n', encoding="utf-8")
    done = grpoctl(
        *("train", "--model", "./model", "--dataset", "rows.jsonl", "--rewards", "politeness", "--steps", "1"),
        cwd=tmp_path,
    )
    assert done.returncode in (2, 3)
    assert "several plugins register a reward 'politeness'" in done.stderr
    assert "Write grpo-clash-one/politeness or grpo-clash-two/politeness." in done.stderr


def test_a_shipped_recipe_means_the_plugin_that_it_requires_also_where_a_user_extends_it(
    tmp_path: Path, grpoctl: Grpoctl
) -> None:
    assert "polite is sound" in grpoctl("recipe", "check", "polite").stdout
    (tmp_path / "mine.yaml").write_text("extends: polite\nrun: {steps: 2}\n", encoding="utf-8")
    assert "mine.yaml is sound" in grpoctl("recipe", "check", "mine.yaml", cwd=tmp_path).stdout
    (tmp_path / "own.yaml").write_text("extends: polite\nrewards: [politeness]\n", encoding="utf-8")
    done = grpoctl("recipe", "check", "own.yaml", cwd=tmp_path)
    assert done.returncode == 3
    assert "several plugins register a reward 'politeness'" in done.stderr
    assert "Write grpo-clash-one/politeness or grpo-clash-two/politeness. (own.yaml:2)" in done.stderr
