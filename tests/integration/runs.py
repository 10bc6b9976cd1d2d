"""Small real runs for the integration tests: a random model, a user's rows, a user's reward, the real command."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core.cli.main import run
from tests.tiny_models import make_model_folder

REWARD = '''
def vowels(completions, wanted):
    """Share of vowels, plus a bonus column: a dense signal that a random model can follow."""
    return [sum(c in "aeiou" for c in text) / max(len(text), 1) + w for text, w in zip(completions, wanted)]
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def make_workplace(folder: Path, *, family: str = "qwen3", rows: int = 12, **model: Any) -> Path:
    """A folder with `model/`, `rows.jsonl` and `mine.py`; `model` are arguments of `make_model_folder`."""
    make_model_folder(folder / "model", family=family, **model)
    lines = [json.dumps({"query": f"Say {number}", "wanted": number % 2}) for number in range(rows)]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "mine.py").write_text(REWARD, encoding="utf-8")
    return folder


def train_arguments(output: str, *more: str) -> list[str]:
    """A run of seconds."""
    return [
        *("train", "--model", "./model", "--dataset", "rows.jsonl", "--rewards", "format_reward,./mine.py:vowels"),
        *("--steps", "4", "--prompts-per-step", "3", "--completions-per-prompt", "4", "--max-completion-tokens", "8"),
        *("--learning-rate", "1e-2", "--seed", "3", "--output", output, *more),
    ]


def grpoctl(folder: Path, *arguments: str, code: int | None = 0) -> Ran:
    """Run the command in `folder` and check its exit code, unless `code` is None. In this process: importing torch
    anew takes longer than these runs do."""
    out, err, before, argv = io.StringIO(), io.StringIO(), Path.cwd(), sys.argv
    try:
        os.chdir(folder)
        sys.argv = ["grpoctl", *arguments]
        with redirect_stdout(out), redirect_stderr(err):
            returned = run()
    finally:
        os.chdir(before)
        sys.argv = argv
    ran = Ran(returncode=returned, stdout=out.getvalue(), stderr=err.getvalue())
    if code is not None:
        assert ran.returncode == code, f"exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran


def metrics_of(run: Path) -> list[dict[str, object]]:
    """metrics.jsonl without what depends on the clock."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in row.items() if not k.startswith(("time/", "throughput/"))} for row in rows]


def completions_of(run: Path) -> list[dict[str, object]]:
    """Every completion of the run, in order."""
    files = sorted((run / "completions").glob("step-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
