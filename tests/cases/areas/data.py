"""Cases of the area `data`: rows through the real path of a run, from a file to samples, bound rewards and prompts.

A reward that no plugin registers (yet) is stood in for by one with the same columns: the cases are about the data.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_core.cli.common import load_plugins
from grpo_core.cli.planning import gather, make_plan
from grpo_core.data.prepare import load_data
from grpo_core.data.prompts import OverLong, render_prompts
from grpo_core.errors import GrpoError
from grpo_core.reward.check import check_rewards
from grpo_core.types import BuildContext, Sample
from tests.cases.expect import ClearError, difference
from tests.tiny_models import make_tokenizer

__all__ = ["check"]

_OVER_LONG: Mapping[str, OverLong] = {"delete": "drop", "raise": "error", "left": "truncate", "right": "truncate"}
_CONTEXT = BuildContext()


def any_answer(completions: list[str]) -> list[float]:
    """A reward that needs no column."""
    return [0.0] * len(completions)


def needs_solution(completions: list[str], solution: list[object]) -> list[float]:
    """Stands in for rewards that compare with a reference."""
    return [0.0] * len(completions)


_STAND_INS: Mapping[str, Callable[..., list[float]]] = {
    "math_reward": needs_solution,
    "cosine_reward": needs_solution,
    "cosine": needs_solution,
    "accuracy": needs_solution,
    "multimodal_accuracy": needs_solution,
}


def check(case: dict[str, Any]) -> str | None:
    """None when the outcome is right, else what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        file = _write(case, Path(folder))
        try:
            samples = _samples(case, file)
        except GrpoError as error:
            if not _names_the_cause(str(error), case):
                return f"the error does not say where: {error}"
            return difference(ClearError(str(error)), case)
        if "env" in case and (differs := _under_environment(case["env"], file, samples)):
            return differs
        return difference(_outcome(samples), case)


def _write(case: Mapping[str, Any], folder: Path) -> Path:
    file = folder / "rows.jsonl"
    text = case["jsonl"] if "jsonl" in case else "".join(json.dumps(row) + "\n" for row in case["rows"])
    file.write_bytes(text.encode("utf-8"))
    return file


def _samples(case: Mapping[str, Any], file: Path) -> Sequence[Sample]:
    """The samples of the case's file after everything that happens before a model loads."""
    config = case.get("config", {})
    flags = {
        "model": "none",
        "dataset": str(file),
        "columns": [f"{old}={new}" for old, new in case.get("columns_option", {}).items()],
        "rewards": ",".join(map(_reward, case.get("rewards", ["any_answer"]))),
    }
    plan, _ = make_plan(gather(None, flags))
    data = load_data(plan, _CONTEXT)
    check_rewards(plan.rewards, data.columns, _CONTEXT)
    rendered = render_prompts(
        data.train,
        make_tokenizer(),
        max_prompt_tokens=config.get("max_prompt_length"),
        over_long=_OVER_LONG[config.get("truncation", "delete")],
    )
    return [prompt.sample for prompt in rendered.prompts]


def _reward(name: str) -> str:
    registered = {
        spelling
        for entry in load_plugins(warn=False).catalog.entries("reward")
        for spelling in (entry.spec.name, *entry.spec.aliases)  # type: ignore[union-attr]
    }
    if name in registered:
        return name
    return f"{__file__}:{_STAND_INS.get(name, any_answer).__name__}"


def _under_environment(env: Mapping[str, str], file: Path, samples: Sequence[Sample]) -> str | None:
    """What differs when the command line reads the file under `env`."""
    code = "import sys; from grpo_core.cli.main import main; sys.argv[0] = 'grpoctl'; main()"
    command = [sys.executable, "-c", code, "datasets", "preview", str(file), "--json", "--rows", "1000"]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, check=False)
    if done.returncode != 0:
        return f"under {env}: {done.stderr.decode('utf-8', 'replace')}"
    shown = [(each["messages"], each["columns"]) for each in json.loads(done.stdout)["samples"]]
    return None if shown == [(_messages(each), each.columns) for each in samples] else f"under {env}: {shown}"


def _names_the_cause(message: str, case: Mapping[str, Any]) -> bool:
    """An error is clear when it says where: a row or file, a column, or the limit that is exceeded."""
    columns = [name for row in case.get("rows", []) for name in row]
    places = ["rows.jsonl", "column", *columns, *map(str, case.get("config", {}).values())]
    return any(place in message for place in places) and "Traceback" not in message


def _outcome(samples: Sequence[Sample]) -> dict[str, object]:
    """Everything that a case may ask about: the first sample, and each column over all of them."""
    first, columns = samples[0], [sample.columns for sample in samples]
    over_all = {
        name: [row.get(name) for row in columns] for name in first.columns if name not in ("solution", "target")
    }
    return {
        **first.columns,
        **over_all,
        **{f"{name}_types": [type(value).__name__ for value in values] for name, values in over_all.items()},
        # As a reward compares them; a number that stays a number is not a fault.
        "solutions": [str(row.get("solution")) for row in columns],
        "rows": len(samples),
        "messages": _messages(first),
        "query": first.messages[-1].content,
        "kept": first.columns,
    }


def _messages(sample: Sample) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in sample.messages]
