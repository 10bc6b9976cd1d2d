"""A run in a few facts: what was trained on what, how far it is, and the numbers one asks for first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grpo_core.recipe.schema import LoraSettings
from grpo_core.report.completions import StepSummary
from grpo_core.report.curves import curve
from grpo_core.report.findings.finding import number, percent
from grpo_core.report.run import RunFolder
from grpo_core.report.trends import Curve, move

__all__ = ["Fact", "facts", "setup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A number with its name."""

    label: str
    value: str
    detail: str = ""


def setup(run: RunFolder) -> list[Fact]:
    """What the plan says was done; nothing without a plan."""
    if run.plan is None:
        return []
    recipe, batch = run.plan.recipe, run.plan.batch
    rewards = ", ".join(f"{reward.name} × {reward.weight:g}" for reward in run.plan.rewards)
    step = f"{batch.prompts_per_step} prompts × {batch.completions_per_prompt} completions"
    update = f"{recipe.objective.loss}, learning rate {recipe.trainer.learning_rate:g}, beta {recipe.objective.beta:g}"
    update += _lora(recipe.trainer.lora)
    return [
        Fact(label="Model", value=_last_part(recipe.model.path)),
        Fact(label="Data", value=", ".join(dataset.reference for dataset in run.plan.datasets)),
        Fact(label="Rewards", value=rewards),
        Fact(label="A step", value=step),
        Fact(label="Update", value=update),
    ]


def _lora(lora: LoraSettings | None) -> str:
    if lora is None:
        return ""
    if lora.adapter is not None:
        return f", LoRA from {lora.adapter}"
    return f", LoRA rank {lora.rank}" if lora.rank else ", LoRA of the default rank"


def facts(run: RunFolder, summaries: Sequence[StepSummary]) -> list[Fact]:
    """The numbers one asks for first; those the run has."""
    return [
        Fact(label="Steps", value=f"{run.steps:,}", detail="finished" if run.finished else "not finished"),
        *_changes(run),
        Fact(label="Completions", value=f"{sum(summary.completions for summary in summaries):,}"),
        Fact(label="Time", value=_duration(sum(curve(run, "time/step_s").values)), detail="evaluations aside"),
    ]


def _changes(run: RunFolder) -> Iterator[Fact]:
    evaluated = curve(run, "eval/accuracy")
    if len(evaluated):
        prompts = curve(run, "eval/prompts").values
        held_out = f"{prompts[-1]:,.0f} held-out prompts" if prompts else "held-out prompts"
        yield Fact(
            label="Greedy accuracy",
            value=_change(evaluated.values[0], evaluated.values[-1]),
            detail=f"{held_out}, step {evaluated.steps[0]} → {evaluated.steps[-1]}",
        )
    rewards = curve(run, "reward/mean")
    if len(rewards):
        yield Fact(label="Total reward", value=_ends(rewards), detail=_window(rewards))
    lengths, truncated = curve(run, "completions/length_mean"), curve(run, "completions/truncated_share")
    if len(lengths):
        cut = f"{percent(move(truncated).after)} cut off at the end" if len(truncated) else ""
        yield Fact(label="Tokens a completion", value=_ends(lengths), detail=cut)


def _ends(curve: Curve) -> str:
    ends = move(curve)
    return _change(ends.before, ends.after)


def _window(curve: Curve) -> str:
    return "first → last step" if curve.window == 1 else f"first {curve.window} → last {curve.window} steps"


def _change(before: float, after: float) -> str:
    return f"{number(before)} → {number(after)}"


def _last_part(path: str) -> str:
    """A folder's name; a hub id as it is."""
    return (
        path if path.count("/") == 1 and not path.startswith((".", "/", "~")) else path.rstrip("/").rpartition("/")[2]
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m"
    return f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"
