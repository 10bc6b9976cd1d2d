"""The recipes with both engines, on a real vLLM server and two ZeRO-3 processes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import grpo_rewards_math
from tests.integration.runs import grpoctl, metrics_of
from tests.plugins.grpo_rollout_vllm.real_server import RealServer
from tests.plugins.grpo_rollout_vllm.workplace import FP32_GAP_NATS

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]
MODEL = Path(grpo_rewards_math.__file__).parent / "recipes" / "countdown-tiny"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with RealServer(MODEL, tmp_path_factory.mktemp("recipes") / "server.log") as server:
        yield server.wait()


def train(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "grpo_core", "train", *arguments]
    subprocess.run(command, cwd=folder, check=True, timeout=900)


def rewards(run: Path) -> list[float]:
    return [float(str(row["reward/mean"])) for row in metrics_of(run) if row["step"]]


def test_the_smoke_recipe_learns_as_the_run_in_one_process_does(server: RealServer, tmp_path: Path) -> None:
    smoke = ("--recipe", "countdown-engines-smoke")
    train(
        tmp_path,
        *(*smoke, "--output", "engines", "--nproc-per-node", "2"),
        *("--set", f"rollout.options.urls=[{server.url}]"),
    )
    grpoctl(
        tmp_path,
        *("train", *smoke, "--output", "alone", "--rollout", "transformers", "--trainer", "torch"),
        *("--set", "trainer.options={}"),
    )
    rows = [row for row in metrics_of(tmp_path / "engines") if row["step"]]
    assert [row["step"] for row in rows] == list(range(1, 21))
    assert all(float(str(row["sampler/gap_max"])) < FP32_GAP_NATS for row in rows), rows
    assert server.label().startswith("grpo-20-")  # the evaluation after the last step
    engines, alone = rewards(tmp_path / "engines"), rewards(tmp_path / "alone")
    for part in (slice(0, 5), slice(15, 20)):
        # A step is 128 completions of rewards of at most 1.1: five of them have a standard error of 0.02.
        assert abs(statistics.fmean(engines[part]) - statistics.fmean(alone[part])) < 0.15
    assert statistics.fmean(engines[15:]) > statistics.fmean(engines[:5]) + 0.05


def test_the_published_recipe_runs_on_rows_of_the_hubs_schema(server: RealServer, tmp_path: Path) -> None:
    """With another model, other rows, shorter texts, and nothing else: one epoch of 48 rows is three steps of 16."""
    assert "countdown is sound" in grpoctl(tmp_path, "recipe", "check", "countdown").stdout
    rows = [{"target": a + b + 3, "nums": [a, b, 3]} for a in range(4, 17) for b in range(20, 24)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    train(
        tmp_path,
        *("--recipe", "countdown", "--output", "run", "--nproc-per-node", "2", "--model", str(MODEL)),
        *("--dataset", "rows.jsonl", "--set", "dataset.preprocess=countdown", "--eval-rows", "4"),
        *("--max-prompt-tokens", "200", "--max-completion-tokens", "48"),
        *("--set", f"rollout.options.urls=[{server.url}]"),
    )
    gaps = [float(str(row["sampler/gap_mean"])) for row in metrics_of(tmp_path / "run") if row["step"]]
    assert len(gaps) == 3
    assert max(gaps) < 0.05  # bf16 in the trainer, fp32 in the server
