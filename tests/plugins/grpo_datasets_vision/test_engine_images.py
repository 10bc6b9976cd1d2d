"""Images through vLLM in the process that trains: once a group, with the trainer's own numbers, in every step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.runs import completions_of
from tests.plugins.grpo_rollout_vllm.real_server import ENVIRONMENT
from tests.plugins.grpo_rollout_vllm.workplace import check_gaps

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]


def test_engine_and_trainer_agree_about_images_after_every_update(tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "grpo_core", "train", "--recipe", "clevr-count-tiny", "--output", "run"),
        *(
            "--rollout",
            "vllm",
            "--set",
            "rollout.options.mode=colocated",
            "--set",
            "rollout.options.context_tokens=128",
        ),
        *("--set", "dataset.options.rows=40", "--eval-rows", "4", "--steps", "3", "--prompts-per-step", "6"),
        *("--num-iterations", "2", "--set", "rollout.repetition_penalty=1.1", "--set", "run.probe_prompts=0"),
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    check_gaps(tmp_path / "run", steps=3)
    rows = completions_of(tmp_path / "run")
    assert len(rows) == 3 * 6 * 8
    assert all("<image>How many" in str(row["prompt"]) for row in rows)
