"""`grpoctl eval`: how good a model, or the model of a run, is on held-out prompts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grpo_core.cli.common import JsonFlag
from grpo_core.cli.console import stdout
from grpo_core.cli.flags import takes_flags

if TYPE_CHECKING:
    from grpo_core.recipe.layers import Layer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval")(evaluate)


@takes_flags
def evaluate(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A run's folder, or one of its checkpoints/step-….")
    ] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", metavar="FILE|NAME", help="A recipe.")] = None,
    samples: Annotated[
        int | None, typer.Option("--samples", metavar="N", help="Sampled answers per prompt, beside the greedy one.")
    ] = None,
    pass_at: Annotated[
        str | None, typer.Option("--pass-at", metavar="K,L", help="The k of pass@k, each at most --samples.")
    ] = None,
    as_json: JsonFlag = False,
    **flags: Any,
) -> None:
    """Evaluate: greedy accuracy, mean reward, each reward and task, and pass@k of sampled answers.

    With RUN: its newest weights on its evaluation rows (or --eval-dataset). Without: --model on --eval-dataset, or on
    all rows of --dataset.
    """
    from grpo_core.cli.planning import gather, make_plan
    from grpo_core.recipe.existence import absent_files
    from grpo_core.recipe.layers import layer_of, merge

    flags["set_"] = [*(flags.get("set_") or ()), *_evaluation_settings(samples, pass_at)]
    layer = gather(recipe, flags, below=_run_settings(run))
    # A step is never made here; one prompt fits any dataset.
    for path in (("run", "prompts_per_step"), ("run", "steps"), ("trainer", "minibatches")):
        layer = merge(layer, layer_of(path, 1, "default", base=Path()))
    plan, _ = make_plan(layer, plugin_files=flags.get("plugin"), problems=absent_files(layer))

    from grpo_core.loop.launch import evaluate_model

    report = evaluate_model(plan, run)
    if as_json:
        typer.echo(_json(report.metrics))
        return
    for name, value in report.metrics.items():
        stdout.print(f"{name:<40} {value:.4f}" if value != int(value) else f"{name:<40} {value:.0f}")


def _evaluation_settings(samples: int | None, pass_at: str | None) -> list[str]:
    settings = [] if samples is None else [f"evaluation.samples={samples}"]
    return settings if pass_at is None else [*settings, f"evaluation.pass_at=[{pass_at}]"]


def _run_settings(run: Path | None) -> Layer | None:
    """What the run was started with."""
    if run is None:
        return None
    from grpo_core.cli.planning import settings_of
    from grpo_core.recipe.plan import LaunchPlan, run_folder

    plan = LaunchPlan.read(run_folder(run))
    batch = plan.recipe.run.model_copy(update={"completions_per_step": None})
    return settings_of(plan, {"run": batch})


def _json(metrics: Any) -> str:
    import json

    return json.dumps(dict(metrics), indent=2)
