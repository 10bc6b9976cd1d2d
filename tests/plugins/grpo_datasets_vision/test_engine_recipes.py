"""Runs with images on real vLLM servers and two ZeRO-3 processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import grpo_datasets_vision
from tests.integration.runs import grpoctl, metrics_of
from tests.plugins.grpo_datasets_vision.hub_rows import geoqa_rows, write_parquet
from tests.plugins.grpo_datasets_vision.test_recipes import RUNS, WORDS
from tests.plugins.grpo_rollout_vllm.real_server import RealServer
from tests.plugins.grpo_rollout_vllm.workplace import check_gaps
from tests.vl_models import make_vl_folder

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]


TINY = Path(grpo_datasets_vision.__file__).parent / "recipes" / "clevr-count-tiny"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vl_folder("qwen2_5_vl", tmp_path_factory.mktemp("served") / "model", words=WORDS)


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[RealServer]:
    with RealServer(model, model.parent / "server.log", "--max-model-len", "600") as server:
        yield server.wait()


@pytest.mark.parametrize("recipe", RUNS)
def test_a_published_recipe_is_sound(recipe: str, tmp_path: Path) -> None:
    assert f"{recipe} is sound" in grpoctl(tmp_path, "recipe", "check", recipe).stdout


def test_three_steps_with_both_engines_on_rows_of_the_hubs_schema(
    server: RealServer, model: Path, tmp_path: Path
) -> None:
    """With another model, other rows, shorter texts, and nothing else."""
    write_parquet(tmp_path / "rows.parquet", geoqa_rows(38))
    command = [
        *(sys.executable, "-m", "grpo_core", "train", "--recipe", "geoqa", "--output", "run", "--nproc-per-node", "2"),
        *("--model", str(model), "--dataset", "geoqa?path=rows.parquet", "--eval-rows", "2"),
        *("--max-completion-tokens", "12", "--set", f"rollout.options.urls=[{server.url}]"),
    ]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=900)
    gaps = [float(str(row["sampler/gap_mean"])) for row in metrics_of(tmp_path / "run") if row["step"]]
    assert len(gaps) == 3
    assert max(gaps) < 0.1  # bf16 in the trainer, fp32 in the server


def test_images_go_through_two_servers_and_two_ranks_with_the_same_numbers_in_every_step(tmp_path: Path) -> None:
    servers = [RealServer(TINY, tmp_path / f"server{number}.log") for number in (1, 2)]
    with servers[0], servers[1]:
        urls = ",".join(server.wait().url for server in servers)
        command = [
            *(sys.executable, "-m", "grpo_core", "train", "--recipe", "clevr-engines-smoke", "--output", "run"),
            *("--nproc-per-node", "2", "--set", f"rollout.options.urls=[{urls}]"),
        ]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=900)
    check_gaps(tmp_path / "run", steps=10)
    rows = metrics_of(tmp_path / "run")
    assert float(str(rows[-1]["eval/accuracy"])) > float(str(rows[0]["eval/accuracy"])) + 0.1
    assert (tmp_path / "run" / "final" / "preprocessor_config.json").is_file()
