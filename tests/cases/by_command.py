"""Cases about the command line: rewards and weights, batch numbers, resuming."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_core.data.feed import Feed
from grpo_core.loop.checkpoint import LoopState, save_checkpoint
from grpo_core.loop.launch import checkpoint_in
from grpo_core.loop.prepare import Prepared
from grpo_core.loop.train import start
from grpo_core.recipe.plan import run_folder
from tests.cases.expect import ClearError, difference
from tests.cases.scored import registered
from tests.integration.runs import Ran, grpoctl
from tests.tiny_models import make_model_folder

__all__ = ["check_batch", "check_command", "check_resume"]

_STAND_INS = Path(__file__).with_name("stand_ins.py")
_ROW = {"query": "6*7?", "solution": "42", "nums": [6, 7], "target": 42}


def check_command(case: Mapping[str, Any]) -> str | None:
    """Run the case's command line as far as a model would load."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = shlex.split(case["cli"])[1:]
        plugin = Path(folder, "plugin.py")
        plugin.write_text(case.get("plugin_file", ""), encoding="utf-8")
        arguments = [plugin.name if argument == "{PLUGIN}" else argument for argument in arguments]
        ran = _dry_run(Path(folder), [_with_stand_ins(argument) for argument in arguments])
    offending = re.split(r"[\s,]+", arguments[-1])
    if case.get("plugin_file") is not None:
        offending.append(plugin.name)  # a file that registers nothing is the cause as well
    return difference(_outcome(ran, offending=offending), case)


def check_batch(case: Mapping[str, Any]) -> str | None:
    """Another trainer's batch numbers in ours: completions of a step, and completions of a prompt."""
    config = case["config"]
    step = config["per_device_train_batch_size"] * config["gradient_accumulation_steps"] * config["world_size"]
    group = config["num_generations"]
    numbers = ["--completions-per-step", str(step), "--completions-per-prompt", str(group)]
    with tempfile.TemporaryDirectory() as folder:
        ran = _dry_run(Path(folder), ["train", "--rewards", "format_reward", *numbers])
    return difference(_outcome(ran, offending=[str(group)]), case)


def check_resume(case: Mapping[str, Any]) -> str | None:
    """Go on from a checkpoint, or from something that is none."""
    with tempfile.TemporaryDirectory() as folder:
        if "checkpoint" not in case:
            place = Path(case["config"]["resume_from_checkpoint"].replace("{OUT}", folder))
            place.mkdir()
            return difference(_outcome(grpoctl(Path(folder), "resume", str(place), code=None), [place.name]), case)
        return difference({"first_step": _first_step_after(Path(folder), case["checkpoint"]["global_step"])}, case)


class _NoTrainer:
    """Has nothing to save."""

    def save(self, directory: Path) -> None:
        pass


def _first_step_after(folder: Path, step: int) -> int:
    (folder / "plan.json").write_text("{}", encoding="utf-8")
    state = LoopState(step=step, version=step, zero_reward_steps=0, fingerprint="rows")
    trainer: Any = _NoTrainer()
    written = save_checkpoint(folder, state, trainer, keep=None)
    assert run_folder(written) == folder.resolve()
    feed = Feed((), prompts_per_step=1, seed=0)
    prepared = Prepared(
        feed=feed, evaluation=(), columns=frozenset(), total_steps=100, fingerprint="rows", notes=(), warnings=()
    )
    return start(prepared, checkpoint_in(folder)).state.step + 1


def _dry_run(folder: Path, arguments: Sequence[str]) -> Ran:
    make_model_folder(folder / "model")
    rows = [json.dumps(_ROW)] * 16
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    fixed = ["--model", "./model", "--dataset", "rows.jsonl", "--max-completion-tokens", "8", "--dry-run"]
    return grpoctl(folder, *arguments, *fixed, code=None)


def _with_stand_ins(argument: str) -> str:
    """The command line is the matter here, so a known reward that is not built yet is stood in for."""
    for name in ("math_reward", "code_reward"):
        if not registered(name):
            argument = re.sub(rf"\b{name}\b", f"{_STAND_INS}:{name}", argument)
    return argument


def _outcome(ran: Ran, offending: Sequence[str]) -> object:
    """Accepted, with the rewards of the plan; or an error, clear when it has one of the offending values in it."""
    if ran.returncode == 0:
        line = re.search(r"^rewards: (.*)$", ran.stdout, re.MULTILINE)
        weighted = line[1].split(", ") if line else []
        return {"accepted": True, "rewards": [part.split(" × ")[1] for part in weighted]}
    clear = ran.returncode in (2, 3, 4) and "Traceback" not in ran.stderr
    if clear and any(value in ran.stderr for value in offending):
        return ClearError(ran.stderr)
    return f"exit {ran.returncode}: {ran.stderr}"
