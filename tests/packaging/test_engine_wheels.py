"""The wheel of each engine plugin with core's alone: what it does without its engine, and with it."""

from __future__ import annotations

import json
import os
from email import message_from_string
from pathlib import Path

import pytest

from tests.packaging.alone import grpoctl, make_import_path
from tests.plugins.grpo_rollout_vllm.workplace import make_place, run_arguments

ENGINES = {"grpo-rollout-vllm": "vllm", "grpo-trainer-deepspeed": "deepspeed"}
COLOCATED = ("--set", "rollout.options.mode=colocated", "--set", "rollout.options.context_tokens=128")


@pytest.fixture(scope="module")
def import_paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of each plugin, with core."""
    return {
        name: make_import_path(tmp_path_factory.mktemp("wheels"), "core", f"plugins/{name}") for name in sorted(ENGINES)
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_place(tmp_path_factory.mktemp("alone"))


def without_engine(import_path: str) -> str:
    """The same, had nobody installed the engines."""
    for path in Path(import_path.split(os.pathsep)[1]).iterdir():
        if path.name.lower().startswith(tuple(ENGINES.values())):
            path.unlink()
    return import_path


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ENGINES))
def test_the_plugin_is_there_and_the_others_are_not(name: str, import_paths: dict[str, str], tmp_path: Path) -> None:
    listed = json.loads(grpoctl(import_paths[name], tmp_path, "plugins", "list", "--json"))
    assert {each["distribution"]: each["status"] for each in listed["plugins"]} == {
        "grpo-core": "loaded",
        name: "loaded",
    }


@pytest.mark.slow
def test_a_run_that_asks_servers_needs_no_vllm_of_its_own(
    import_paths: dict[str, str], place: Path, tmp_path: Path
) -> None:
    import_path = without_engine(import_paths["grpo-rollout-vllm"])
    (metadata,) = Path(import_path.split(os.pathsep)[0]).glob("grpo_rollout_vllm-*.dist-info/METADATA")
    needs = message_from_string(metadata.read_text(encoding="utf-8")).get_all("Requires-Dist", [])
    assert [need.partition(">")[0].partition("<")[0] for need in needs] == ["grpo-core"]
    nobody = ("--set", "rollout.options.urls=[http://127.0.0.1:9]", "--set", "rollout.options.wait_limit_s=0.1")
    said = grpoctl(import_path, place, *run_arguments(str(tmp_path / "run"), *nobody), code=4)
    assert "for every vLLM server to be there: http://127.0.0.1:9 is down since" in said
    said = grpoctl(import_path, place, *run_arguments(str(tmp_path / "other"), *COLOCATED), code=3)
    assert "mode is colocated, and vLLM cannot be imported here" in said
    assert "vLLM is not installed here" in grpoctl(import_path, place, "rollout", "--model", "./model", code=3)


@pytest.mark.slow
def test_its_recipes_say_what_to_install_beside(import_paths: dict[str, str], tmp_path: Path) -> None:
    said = grpoctl(import_paths["grpo-rollout-vllm"], tmp_path, "recipe", "check", "countdown", code=3)
    assert "pip install grpo-rewards-math" in said


@pytest.mark.slow
def test_without_deepspeed_its_trainer_says_what_to_install(
    import_paths: dict[str, str], place: Path, tmp_path: Path
) -> None:
    import_path = without_engine(import_paths["grpo-trainer-deepspeed"])
    deepspeed = ("--rollout", "transformers", "--trainer", "deepspeed")
    said = grpoctl(import_path, place, *run_arguments(str(tmp_path / "run"), *deepspeed), code=3)
    assert "'deepspeed' needs deepspeed>=0.19.8, not installed here" in said


@pytest.mark.engines
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("grpo-rollout-vllm", COLOCATED),
        ("grpo-trainer-deepspeed", ("--rollout", "transformers", "--trainer", "deepspeed")),
    ],
)
def test_it_trains_with_its_engine(
    name: str, more: tuple[str, ...], import_paths: dict[str, str], place: Path, tmp_path: Path
) -> None:
    said = grpoctl(import_paths[name], place, *run_arguments(str(tmp_path / "run"), *more, steps=1))
    assert "finished after 1 step" in said
