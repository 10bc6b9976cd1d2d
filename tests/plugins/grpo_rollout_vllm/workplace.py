"""A folder to train in with a real vLLM, the arguments of a run of seconds, and what it must have come to."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.runs import metrics_of
from tests.plugins.grpo_rollout_vllm.real_server import make_served_model

FP32_GAP_NATS = 1e-4
REWARD = """
def vowels(completions, wanted):
    return [sum(c in "aeiou" for c in text) / max(len(text), 1) + w for text, w in zip(completions, wanted)]
"""


def make_place(folder: Path) -> Path:
    """`model/`, `rows.jsonl` and `mine.py`."""
    make_served_model(folder / "model")
    rows = [json.dumps({"query": f"Say {number}", "wanted": number % 2}) for number in range(12)]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "mine.py").write_text(REWARD, encoding="utf-8")
    return folder


def run_arguments(output: str, *more: str, steps: int = 4) -> list[str]:
    """Of `grpoctl`, for a run with vLLM in fp32."""
    return [
        *("train", "--model", "./model", "--dataset", "rows.jsonl", "--rewards", "./mine.py:vowels", "--seed", "3"),
        *("--steps", str(steps), "--prompts-per-step", "3", "--completions-per-prompt", "4"),
        *("--max-completion-tokens", "8", "--learning-rate", "1e-2", "--output", output, "--rollout", "vllm"),
        *("--set", "rollout.max_gap_nats=0.001", "--set", "run.probe_prompts=0", *more),
    ]


def check_gaps(run: Path, steps: int = 4) -> None:
    """Engine and trainer agreed in every step."""
    rows = metrics_of(run)
    assert [row["step"] for row in rows if row["step"]] == list(range(1, steps + 1))
    assert all(float(str(row["sampler/gap_max"])) < FP32_GAP_NATS for row in rows if row["step"]), rows
