"""The numbers of a run that follow from its settings and its data, and how they are shown before anything loads.

    steps        given, or epochs × rows ÷ prompts per step, rounded up
    updates      steps × num_iterations × minibatches
    completions  steps × prompts per step × completions per prompt
    tokens       at most completions × max_completion_tokens are drawn

What the model adds (parameters, memory) is in `memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from grpo_core.errors import Problem, RecipeError
from grpo_core.recipe.checks import prompts_per_step
from grpo_core.recipe.memory import ModelShape, estimate_memory, mebibytes
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.ranges import MOST
from grpo_core.recipe.saving import saving_words
from grpo_core.recipe.schema import Recipe

__all__ = ["RunNumbers", "derive", "describe", "print_plan", "total_steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNumbers:
    """Totals of a run."""

    steps: int
    """Rollouts."""
    updates: int
    """Optimiser updates; learning-rate schedules count these."""
    completions: int
    """Answers drawn."""
    max_generated_tokens: int
    """No more tokens than these are drawn."""


def total_steps(recipe: Recipe, *, rows: int | None) -> int:
    """How many steps a run has, at least 1; `rows` None: the data is streamed, and the recipe says how many. Raises
    `RecipeError` when epochs are absurdly many.

    Example: 2 epochs of 1,000 rows at 16 prompts a step are 125 steps.
    """
    if recipe.run.steps is not None:
        return recipe.run.steps
    assert rows is not None
    epochs = Fraction(str(recipe.run.epochs or 1))  # exact: 0.1 × 30 ÷ 3 is 1, not a little more
    steps = max(1, ceil(epochs * rows / prompts_per_step(recipe)))
    if steps > MOST:
        message = f"{recipe.run.epochs:g} epochs of {rows:,} rows are {steps:,} steps; at most {MOST:,} can be made"
        raise RecipeError([Problem(path="run.epochs", message=message)])
    return steps


def derive(plan: LaunchPlan, *, rows: int | None) -> RunNumbers:
    """The totals of a run over so many training rows."""
    steps = total_steps(plan.recipe, rows=rows)
    completions = steps * plan.batch.completions_per_step
    return RunNumbers(
        steps=steps,
        updates=steps * plan.batch.updates_per_step,
        completions=completions,
        max_generated_tokens=completions * plan.recipe.rollout.max_completion_tokens,
    )


def describe(
    plan: LaunchPlan,
    *,
    rows: int | None,
    evaluation_rows: int,
    longest_prompt: int,
    parameters: int,
    shape: ModelShape | None = None,
    adapter: int | None = None,
    mix: Sequence[tuple[str, float, int | None]] = (),
    ranks: int = 1,
) -> list[tuple[str, str]]:
    """The plan as (label, text) lines; `longest_prompt` in tokens, `shape` for the memory estimate, `adapter` the
    parameters that LoRA adds, `mix` the name, share and rows of each dataset, `ranks` how many processes train."""
    numbers, batch, recipe = derive(plan, rows=rows), plan.batch, plan.recipe
    trained = "" if adapter is None else f" and {_short(adapter)} of an adapter, which is trained"
    if shape is not None and shape.frozen and adapter is None:
        trained = f", of which {_short(shape.frozen)} are frozen"
    lines = [
        ("model", f"{recipe.model.path}, {_short(parameters)} parameters{trained}, {recipe.trainer.precision}"),
        ("engines", f"{_engines(plan)}, in {_count(ranks, 'process', 'processes')}"),
        (
            "data",
            f"{_rows(rows)}, {_count(evaluation_rows, 'evaluation row')}, prompts of up to "
            f"{_count(longest_prompt, 'token')}",
        ),
        *([("mix", ", ".join(f"{share:.1%} {name} ({_rows(count)})" for name, share, count in mix))] if mix else []),
        ("rewards", ", ".join(f"{reward.weight:g} × {reward.name}" for reward in plan.rewards)),
        (
            "a step",
            f"{_count(batch.prompts_per_step, 'prompt')} × {batch.completions_per_prompt} completions = "
            f"{batch.completions_per_step} completions",
        ),
        ("steps", f"{numbers.steps:,}{_why_so_many(recipe, rows)}"),
        (
            "updates",
            f"{numbers.updates:,} = {_count(numbers.steps, 'step')} × "
            f"{_count(recipe.trainer.num_iterations, 'iteration')} × "
            f"{_count(recipe.trainer.minibatches, 'minibatch', 'minibatches')}",
        ),
        ("micro-batches", _micro_batches(plan)),
        (
            "tokens",
            f"at most {_short(numbers.max_generated_tokens)} drawn: {numbers.completions:,} completions of up to "
            f"{recipe.rollout.max_completion_tokens}",
        ),
        ("checkpoints", saving_words(recipe.run)),
    ]
    if shape is not None and plan.weights_route == "shared":
        lines.append(("memory", _memory(plan, shape, longest_prompt, ranks)))
    return lines


def print_plan(
    plan: LaunchPlan,
    *,
    rows: int | None,
    evaluation_rows: int,
    longest_prompt: int,
    parameters: int,
    shape: ModelShape | None = None,
    adapter: int | None = None,
    mix: Sequence[tuple[str, float, int | None]] = (),
    ranks: int = 1,
) -> None:
    """Print what `describe` says to stdout; aligned on a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lines = describe(
        plan,
        rows=rows,
        evaluation_rows=evaluation_rows,
        longest_prompt=longest_prompt,
        parameters=parameters,
        shape=shape,
        adapter=adapter,
        mix=mix,
        ranks=ranks,
    )
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        for label, text in lines:
            console.print(Text(f"{label}: {text}"))
        return
    table = Table.grid(padding=(0, 2))
    for label, text in lines:
        table.add_row(Text(label, style="bold"), Text(text))
    console.print(table, soft_wrap=False)


def _engines(plan: LaunchPlan) -> str:
    rollout, trainer = (part.name.rpartition("/")[2] for part in (plan.rollout, plan.trainer))
    return f"completions by {rollout}, updates by {trainer}"


def _micro_batches(plan: LaunchPlan) -> str:
    trainer = plan.recipe.trainer
    reason = plan.found.get("trainer.micro_batch_tokens")
    prompts = "a prompt for each completion" if trainer.shared_prefix == "off" else "prompts once a group"
    return f"of up to {_count(trainer.token_budget, 'token')}, {prompts}" + (f" ({reason})" if reason else "")


def _rows(rows: int | None) -> str:
    return "training rows are streamed" if rows is None else _count(rows, "training row")


def _why_so_many(recipe: Recipe, rows: int | None) -> str:
    if recipe.run.steps is not None or rows is None:
        return ""
    epochs = recipe.run.epochs or 1
    prompts = _count(prompts_per_step(recipe), "prompt")
    return f" = {_count(epochs, 'epoch')} × {_count(rows, 'row')} ÷ {prompts}, rounded up"


def _memory(plan: LaunchPlan, shape: ModelShape, longest_prompt: int, ranks: int) -> str:
    estimate = estimate_memory(plan, shape, longest_prompt=longest_prompt, ranks=ranks)
    parts = ", ".join(f"{name} {mebibytes(size)}" for name, size in estimate.parts.items() if size)
    where = f" in each of {ranks} processes" if ranks > 1 else ""
    return f"about {mebibytes(estimate.peak)} at the peak{where} ({parts})"


def _count(number: float, one: str, several: str = "") -> str:
    """`1 row`, `2,000 rows`, `0.5 epochs`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {one if number == 1 else several or f'{one}s'}"


def _short(number: int) -> str:
    """1,234 -> `1.23 k`; three digits are enough to judge."""
    for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return str(number)
