"""The model card: README.md beside exported weights, which says how they were made and what was measured.

Made of the plan and the run's own records alone: a number that nobody measured is in no table, and what is missing is
said. Called by `keeping`.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_core.recipe.plan import LaunchPlan, PlannedDataset
from grpo_core.types import EvaluationReport

__all__ = ["Measured", "model_card"]

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_EDGE_STEPS = 10
"""Training rewards are shown as means over so many steps at either end."""

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What is known about exported weights."""

    step: int
    """Steps done."""
    before: EvaluationReport | None
    """Held-out rows before training; None when there was no evaluation."""
    after: EvaluationReport | None
    """Of these weights; None when they were not evaluated."""
    rows: Sequence[Row]
    """metrics.jsonl up to this step."""
    chosen_by: str | None = None
    """The metric by which they are the best of the run; None: they are its last."""


def model_card(plan: LaunchPlan, run_dir: Path, measured: Measured) -> str:
    """The card, Markdown with a YAML head as the Hugging Face hub reads it."""
    parts = [
        _head(plan),
        _title(plan, run_dir, measured),
        _section("Results", _results(measured)),
        _section("Rewards", _rewards(plan)),
        _section("Training", _training(plan, measured)),
        _section("Versions", _versions(plan)),
        _section("Command", _command(plan)),
    ]
    return "\n".join(parts)


def _head(plan: LaunchPlan) -> str:
    lines = ["---", "library_name: transformers", "pipeline_tag: text-generation"]
    if _is_hub_id(plan.recipe.model.path):
        lines.append(f"base_model: {plan.recipe.model.path}")
    hub_data = [id_ for dataset in plan.datasets if (id_ := _hub_dataset(dataset))]
    lines += ["datasets:", *(f"- {id_}" for id_ in hub_data)] if hub_data else []
    return "\n".join([*lines, "tags:", "- grpo", "- grpo-core", "---", ""])


def _title(plan: LaunchPlan, run_dir: Path, measured: Measured) -> str:
    data = ", ".join(f"`{_dataset_name(dataset)}`" for dataset in plan.datasets)
    what = f"`{_model_name(plan)}`, trained with GRPO on {data} for {measured.step} steps by grpo-core."
    if measured.chosen_by is not None:
        what += f"\nOf all evaluations of the run so far, this one has the best `{measured.chosen_by}`."
    if plan.recipe.trainer.lora is not None and not plan.recipe.trainer.lora.merge:
        what += "\nThe weights here are a LoRA adapter of that model."
    return f"# {run_dir.resolve().name}\n\n{what}\n"


def _section(title: str, lines: Iterator[str]) -> str:
    body = list(lines)
    return "\n".join([f"## {title}", "", *body, ""]) if body else ""


def _results(measured: Measured) -> Iterator[str]:
    before, after = measured.before, measured.after
    if after is None:
        yield "These weights were not evaluated on held-out prompts."
    else:
        yield f"On {after.metrics['eval/prompts']:.0f} held-out prompts, answered greedily; for `pass@k` and `sampled`"
        yield "by sampling."
        yield ""
        yield f"| | before training | after {after.step} steps |"
        yield "| --- | --- | --- |"
        for name, value in after.metrics.items():
            if name != "eval/prompts":
                earlier = before.metrics.get(name) if before is not None else None
                yield f"| `{name}` | {'not measured' if earlier is None else _shown(earlier)} | {_shown(value)} |"
    yield from _training_rewards([row for row in measured.rows if row["step"] != 0])
    yield from _collapse(measured.rows)


def _training_rewards(rows: Sequence[Row]) -> Iterator[str]:
    edge = min(_EDGE_STEPS, len(rows) // 2)
    if edge == 0:
        return
    names = ["reward/mean", *(name for name in rows[-1] if name.startswith("rewards/") and name.endswith("/mean"))]
    yield ""
    yield "On training prompts, whose completions are sampled:"
    yield ""
    yield "| | first step | last step |" if edge == 1 else f"| | first {edge} steps | last {edge} steps |"
    yield "| --- | --- | --- |"
    for name in names:
        yield f"| `{name}` | {_mean(rows[:edge], name)} | {_mean(rows[-edge:], name)} |"


def _collapse(rows: Sequence[Row]) -> Iterator[str]:
    steps = [row["step"] for row in rows if row.get("health/collapse") == 1]
    if steps:
        yield ""
        count = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
        yield f"The run warned of a collapse in {count}, first in step {steps[0]}."


def _rewards(plan: LaunchPlan) -> Iterator[str]:
    yield "| reward | weight | from |"
    yield "| --- | --- | --- |"
    for reward in plan.rewards:
        origin = reward.component
        source = f"{origin.distribution} {origin.version}" if origin.distribution else Path(origin.name).name
        yield f"| `{reward.name}` | {reward.weight:g} | {source} |"


def _training(plan: LaunchPlan, measured: Measured) -> Iterator[str]:
    yield "| setting | value |"
    yield "| --- | --- |"
    for name, value in _settings(plan, measured):
        yield f"| {name} | {value} |"
    yield ""
    yield "All settings are in the run's `plan.json`."


def _settings(plan: LaunchPlan, measured: Measured) -> Iterator[tuple[str, str]]:
    recipe, batch, trainer = plan.recipe, plan.batch, plan.recipe.trainer
    revision = f" (revision {recipe.model.revision})" if recipe.model.revision else ""
    yield "base model", f"`{_model_name(plan)}`{revision}"
    yield "data", ", ".join(f"`{_dataset_name(dataset)}`" for dataset in plan.datasets)
    yield "steps", str(measured.step)
    yield "batch", f"{batch.prompts_per_step} prompts × {batch.completions_per_prompt} completions a step"
    yield "optimiser updates", f"{batch.updates_per_step} a step"
    yield "loss", f"{recipe.objective.loss}, advantages {recipe.advantage.estimator} / {recipe.advantage.scale}"
    yield "KL", f"beta {recipe.objective.beta:g}" if recipe.objective.beta else "none"
    yield "learning rate", f"{trainer.learning_rate:g}, {trainer.schedule}"
    yield "largest gradient norm", "not limited" if trainer.max_grad_norm is None else f"{trainer.max_grad_norm:g}"
    yield "precision", trainer.precision
    if trainer.lora is not None:
        yield "LoRA", ", ".join(f"{name} {value}" for name, value in trainer.lora.model_dump().items() if value)
    yield "sampling", f"temperature {recipe.rollout.temperature:g}, top-p {recipe.rollout.top_p:g}"
    yield "completions", f"at most {recipe.rollout.max_completion_tokens} tokens"
    yield "backends", f"{plan.rollout.name} and {plan.trainer.name}"
    yield "seed", str(recipe.run.seed)


def _versions(plan: LaunchPlan) -> Iterator[str]:
    components = [*(reward.component for reward in plan.rewards), plan.rollout, plan.trainer]
    components += [dataset.preprocess for dataset in plan.datasets if dataset.preprocess is not None]
    found = {each.distribution: each.version for each in components if each.distribution}
    found |= {"grpo-core": plan.core_version}
    found |= {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    yield ", ".join([*(f"{name} {version}" for name, version in sorted(found.items())), _python()])


def _python() -> str:
    return f"Python {platform.python_version()}"


def _command(plan: LaunchPlan) -> Iterator[str]:
    if plan.command:
        yield "```console"
        yield from (f"$ {line}" for line in plan.command.splitlines())
        yield "```"


def _model_name(plan: LaunchPlan) -> str:
    """The hub id; of a folder or file only its own name, since the rest is about a machine."""
    path = plan.recipe.model.path
    return path if _is_hub_id(path) or path.startswith("pkg:") else Path(path).name


def _dataset_name(dataset: PlannedDataset) -> str:
    return _hub_dataset(dataset) or dataset.reference.rpartition("/")[2]


def _hub_dataset(dataset: PlannedDataset) -> str | None:
    """The hub id in `hf:owner/name?split=train#50000`."""
    place = re.split(r"[?#]", dataset.reference)[0]
    id_ = place.removeprefix("hf:")
    return id_ if dataset.source is None and _HUB_ID.fullmatch(id_) and not Path(place).exists() else None


def _is_hub_id(path: str) -> bool:
    return _HUB_ID.fullmatch(path) is not None and not Path(path).exists()


def _mean(rows: Sequence[Row], name: str) -> str:
    values = [value for row in rows if isinstance(value := row.get(name), int | float)]
    return _shown(statistics.fmean(values)) if values else "none applied"


def _shown(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.0f}"
