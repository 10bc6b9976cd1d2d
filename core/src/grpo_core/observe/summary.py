"""The few numbers of a step that a person wants at a glance, as text. Used by every form of the console."""

from __future__ import annotations

import math
from collections.abc import Mapping

from grpo_core.types import RunOutcome, StepReport

__all__ = ["closing_lines", "evaluation_line", "seconds_text", "step_fields"]

_OF_TASKS = "eval/tasks/"


def step_fields(report: StepReport) -> list[tuple[str, str]]:
    """(label, value) of a step: total reward, each reward, length, learning signal, update."""
    metrics = report.metrics
    rewards = [
        (name.split("/")[1], _number(metrics, name))
        for name in metrics
        if name.startswith("rewards/") and name.endswith("/mean")
    ]
    fields = [
        ("reward", _number(metrics, "reward/mean")),
        *(rewards if len(rewards) > 1 else []),
        ("length", _number(metrics, "completions/length_mean", ".0f")),
        ("cut off", _number(metrics, "completions/truncated_share", ".0%")),
        ("no signal", _number(metrics, "groups/no_signal_share", ".0%")),
        ("entropy", _number(metrics, "policy/entropy")),
        ("kl", _number(metrics, "policy/kl", ".4f")),
        ("grad", _number(metrics, "trainer/grad_norm", ".2f")),
        ("s/step", _number(metrics, "time/step_s", ".1f")),
    ]
    return [(label, text) for label, text in fields if text]


def _number(metrics: Mapping[str, float | None], name: str, form: str = ".3f") -> str:
    value = metrics.get(name)
    return "" if value is None else format(value, form)


def evaluation_line(metrics: Mapping[str, float]) -> str:
    """One line about an evaluation."""
    reward = metrics.get("eval/reward_mean")
    parts = [
        _accuracy(metrics),
        f"reward {reward:.3f}" if reward is not None else "",
        *(f"{name.removeprefix('eval/')} {value:.3f}" for name, value in metrics.items() if "pass@" in name),
    ]
    return f"{', '.join(filter(None, parts))} on {metrics['eval/prompts']:.0f} held-out prompts"


def _accuracy(metrics: Mapping[str, float]) -> str:
    """With how many prompts it is of, where some were not judged."""
    accuracy = metrics.get("eval/accuracy")
    if accuracy is None:
        return ""
    text, judged, prompts = f"greedy accuracy {accuracy:.3f}", _judged(metrics), round(metrics["eval/prompts"])
    if judged == prompts:
        return text
    return f"{text} ({round(accuracy * judged)} of {judged} judged; {prompts - judged} not judged)"


def _judged(metrics: Mapping[str, float]) -> int:
    """How many prompts the accuracy is of."""
    return round(metrics["eval/prompts"] * metrics.get("eval/judged_share", 1.0))


def closing_lines(outcome: RunOutcome) -> list[str]:
    """What to say when a run ends: how, before and after, and where everything is."""
    steps = _steps(outcome.steps)
    lines = {
        "finished": [f"finished after {steps}"],
        "interrupted": [f"interrupted after {steps}; {_how_to_go_on(outcome)}: grpoctl resume {outcome.run_dir}"],
        "failed": [f"failed after {steps}"],
    }[outcome.status]
    lines += _before_and_after(outcome)
    if outcome.status == "finished":
        lines.append(f"model: {outcome.run_dir / 'final'}")
    lines.append(f"metrics: {outcome.run_dir / 'metrics.jsonl'}   completions: {outcome.run_dir / 'completions'}")
    return lines


def _how_to_go_on(outcome: RunOutcome) -> str:
    if outcome.saved_step == outcome.steps > 0:
        return "go on with"
    return f"go on from step {outcome.saved_step} with" if outcome.saved_step else "nothing is saved, begin again with"


def _before_and_after(outcome: RunOutcome) -> list[str]:
    first, last = outcome.first_evaluation, outcome.last_evaluation
    if first is None or last is None or last.step == first.step:
        return []
    lines = []
    for label, name in (("greedy accuracy", "eval/accuracy"), ("mean reward", "eval/reward_mean")):
        if name in first.metrics and name in last.metrics:
            before, after = first.metrics[name], last.metrics[name]
            prompts = f"{last.metrics['eval/prompts']:.0f}"
            if name == "eval/accuracy" and f"{_judged(last.metrics)}" != prompts:
                prompts = f"the {_judged(last.metrics)} judged of {prompts}"
            lines.append(
                f"{label} on {prompts} held-out prompts: "
                f"{before:.3f} before, {after:.3f} after {_steps(last.step)} ({after - before:+.3f})"
            )
    return [*lines, *_tasks_before_and_after(first.metrics, last.metrics)]


def _tasks_before_and_after(first: Mapping[str, float], last: Mapping[str, float]) -> list[str]:
    """A line a task, with the standard error of the change: two independent means, which errs on the large side."""
    lines = []
    for name, after in last.items():
        task = name.removeprefix(_OF_TASKS).removesuffix("/reward_mean")
        if name == f"eval/tasks/{task}/reward_mean" and name in first:
            before = first[name]
            error = math.hypot(*(each.get(f"eval/tasks/{task}/reward_se", math.nan) for each in (first, last)))
            about = "" if math.isnan(error) else f" ± {error:.3f}"
            lines.append(
                f"  task {task}: mean reward {before:.3f} before, {after:.3f} after ({after - before:+.3f}{about})"
            )
    return lines


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def seconds_text(seconds: float) -> str:
    """`3m20s` and the like."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
