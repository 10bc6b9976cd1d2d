"""The folder of a run as far as rescoring reads it, written by what writes it in a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grpo_core.cli.planning import gather, make_plan
from grpo_core.loop.records import Records
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.trial.scoring import make_group, open_scorer, score
from grpo_core.types import FinishReason, Sample, StepReport
from tests.core.trial.making import CONTEXT, REWARDS, SETTINGS, answers

TEXTS = ("<answer>1</answer>", "1", "<answer>2</answer> \u2028 more")


def make_run(folder: Path, *, steps: int = 2, model: str = "none", total_steps: int | None = 4) -> Path:
    """A run of `exact` (weight 1) over two prompts a step, three completions each."""
    rows = folder / "rows.jsonl"
    rows.write_text('{"query": "?", "solution": 1}\n' * 8, encoding="utf-8")
    flags = {"model": model, "dataset": str(rows), "rewards": f"{REWARDS}:exact", "prompts_per_step": "2"}
    plan, _ = make_plan(gather(None, flags if total_steps is None else {**flags, "steps": str(total_steps)}))
    run_dir = folder / "run"
    run_dir.mkdir()
    plan.write(run_dir)
    records = Records(run_dir)
    for step in range(1, steps + 1):
        records.write_step(_report(plan, step, answers(1, 2)))
    return run_dir


def _report(plan: LaunchPlan, step: int, samples: Sequence[Sample]) -> StepReport:
    reasons = [FinishReason.STOP, FinishReason.LENGTH, FinishReason.STOP]
    groups = [
        make_group(sample, TEXTS, prompt="user: ?", token_ids=[[1, 2], [1], [1]], finish_reasons=reasons)
        for sample in samples
    ]
    with open_scorer(plan.rewards, SETTINGS, ["solution"], CONTEXT) as scorer:
        scored = score(scorer, groups)
    metrics = {"epoch": step * 2 / 8}
    return StepReport(
        step=step, total_steps=4, metrics=metrics, groups=scored, advantages=((0.0,) * len(TEXTS),) * len(scored)
    )
