"""What a run sees of the plugin where vLLM is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl
from tests.plugins.grpo_rollout_vllm.stand_in import StandIn


def test_the_module_of_the_entry_point_imports_neither_vllm_nor_torch() -> None:
    source = (
        "import sys, grpo_rollout_vllm.plugin, grpo_rollout_vllm.options\n"
        "assert not {'torch', 'vllm', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("urls=[localhost:8000]", "rollout.options.urls"),
        ("urls=[]", "rollout.options.urls"),
        ("transfer=ftp", "rollout.options.transfer"),
        ("wait_limit=5", "wait_limit_s"),
    ],
)
def test_wrong_options_are_recipe_errors(option: str, message: str, tmp_path: Path, model: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"query": "a"}\n', encoding="utf-8")
    arguments = ("train", "--model", str(model), "--dataset", "rows.jsonl", "--rewards", "format_reward")
    ran = grpoctl(tmp_path, *arguments, "--rollout", "vllm", "--set", f"rollout.options.{option}", "--dry-run", code=2)
    assert message in ran.stderr


def test_a_run_trains_with_a_server(server: StandIn, model: Path, tmp_path: Path) -> None:
    """The stand-in's log-probabilities are its own, so the comparison with the trainer stops the run: with numbers."""
    (tmp_path / "rows.jsonl").write_text('{"query": "a"}\n{"query": "b"}\n', encoding="utf-8")
    server.logprob = -5.5
    run = ("--steps", "2", "--prompts-per-step", "2", "--completions-per-prompt", "2", "--max-completion-tokens", "4")
    ran = grpoctl(
        tmp_path,
        *("train", "--model", str(model), "--dataset", "rows.jsonl", "--rewards", "format_reward", *run),
        *("--output", "run", "--rollout", "vllm", "--set", f"rollout.options.urls=[{server.url}]"),
        code=4,
    )
    assert "the trainer gives the sampled tokens other log-probabilities than the rollout engine did" in ran.stderr
    assert server.label.startswith("grpo-0-")
