"""`grpoctl rollout` hands over to the backend that has a server; which one, and what it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import grpo_rewards_math
from tests.core.plugins.installed import write_plugin
from tests.integration.runs import grpoctl

ONE = """
from grpo_core.api import RolloutSpec, hookimpl


def make(options, context): ...


def serve(model, *, host, port, arguments):
    print(f"{model.path} at {host}:{port} with {list(arguments)}")
    print(model.revision, model.tokenizer, model.trust_remote_code)
    return 7


@hookimpl
def grpo_rollout_backends():
    yield RolloutSpec(name="NAME", summary="s", target=f"{__file__}:make", serve=SERVE)
"""
SERVES = 'f"{__file__}:serve"'


@pytest.fixture(autouse=True)
def only_what_a_test_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_DISABLE_PLUGINS", "grpo-rollout-vllm")


def plugin(folder: Path, name: str, serve: str = SERVES) -> list[str]:
    source = ONE.replace("NAME", name).replace("SERVE", serve)
    return ["--plugin", str(write_plugin(folder, source, name=f"{name}.py"))]


def test_the_only_backend_with_a_server_is_told_the_model_the_place_and_its_own_options(tmp_path: Path) -> None:
    flags = plugin(tmp_path, "acme")
    ran = grpoctl(tmp_path, "rollout", *flags, "--model", "m", "--port", "8123", "--fast", "--depth=2", "x", code=7)
    assert ran.stdout == "m at 127.0.0.1:8123 with ['--fast', '--depth=2', 'x']\nNone None False\n"


def test_of_several_servers_one_is_chosen_by_name(tmp_path: Path) -> None:
    flags = [*plugin(tmp_path, "one"), *plugin(tmp_path, "two")]
    refused = grpoctl(tmp_path, "rollout", *flags, "--model", "m", code=2)
    assert "several rollout backends have a server: one, two\n  choose one with --rollout" in refused.stderr
    assert (
        "m at 0.0.0.0:8000"
        in grpoctl(tmp_path, "rollout", *flags, "--model", "m", "--rollout", "two", "--host", "0.0.0.0", code=7).stdout
    )


def test_a_backend_without_a_server_says_which_have_one(tmp_path: Path) -> None:
    refused = grpoctl(
        tmp_path, "rollout", *plugin(tmp_path, "acme"), "--model", "m", "--rollout", "transformers", code=2
    )
    assert "the rollout backend 'transformers' has no server\n  these have: acme" in refused.stderr


def test_without_any_server_the_command_says_so(tmp_path: Path) -> None:
    refused = grpoctl(tmp_path, "rollout", "--model", "m", code=3)
    assert "no rollout backend that is installed has a server" in refused.stderr


def test_what_serves_must_be_a_target(tmp_path: Path) -> None:
    ran = grpoctl(tmp_path, "rollout", *plugin(tmp_path, "acme", serve='"here"'), "--model", "m", code=3)
    assert "serve" in ran.stderr
    assert "pkg.mod:attr" in ran.stderr


def test_the_model_may_be_that_of_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "folder" / name).touch()
    (tmp_path / "mine.yaml").write_text("model: ./folder\n", encoding="utf-8")
    (tmp_path / "none.yaml").write_text("summary: nothing\n", encoding="utf-8")
    flags = plugin(tmp_path, "acme")
    ran = grpoctl(tmp_path, "rollout", *flags, "--recipe", "mine.yaml", code=7)
    assert ran.stdout.startswith(f"{tmp_path / 'folder'} at")
    for arguments in ((), ("--recipe", "none.yaml")):
        refused = grpoctl(tmp_path, "rollout", *flags, *arguments, code=2)
        assert "there is no model to serve\n  give one with --model" in refused.stderr


def test_a_recipes_model_is_served_with_all_that_the_recipe_says_of_it(tmp_path: Path) -> None:
    recipe = "model: {path: org/name, revision: v2, tokenizer: org/tokenizer, trust_remote_code: true}\n"
    (tmp_path / "mine.yaml").write_text(recipe, encoding="utf-8")
    ran = grpoctl(tmp_path, "rollout", *plugin(tmp_path, "acme"), "--recipe", "mine.yaml", code=7)
    assert ran.stdout == "org/name at 127.0.0.1:8000 with []\nv2 org/tokenizer True\n"


def test_a_model_is_found_as_train_finds_it(tmp_path: Path) -> None:
    flags = plugin(tmp_path, "acme")
    ran = grpoctl(tmp_path, "rollout", *flags, "--model", "pkg:grpo_rewards_math/recipes/countdown-tiny", code=7)
    assert ran.stdout.startswith(f"{Path(grpo_rewards_math.__file__).parent / 'recipes' / 'countdown-tiny'} at")
    for path, said in (("./none", "there is no such folder"), ("pkg:grpo_core/none", "there is no 'none' in")):
        assert said in grpoctl(tmp_path, "rollout", *flags, "--model", path, code=2).stderr
