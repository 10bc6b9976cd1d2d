"""`grpoctl rewards`: rewards looked at before a model learns to exploit them. No model is loaded."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grpo_core.cli.common import JsonFlag, PluginFiles, load_plugins
from grpo_core.cli.console import print_json, stderr
from grpo_core.cli.rewards_settings import planned_reward, reward_settings, shipped_file, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grpo_core.recipe.plan import PlannedReward

__all__ = ["register"]

_app = typer.Typer(no_args_is_help=True, help="Look at rewards, and try and test them, without a model.")

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A reward: a registered name, ./file.py:function, pkg.mod:function.")
]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="As in a run: rewards.NAME.options.timeout_s=5. Repeatable."),
]
_FAILED = 4


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    app.add_typer(_app, name="rewards")


@_app.command("list")
def list_rewards(
    columns: Annotated[
        bool, typer.Option("--columns", help="Also import each reward, and say which columns it takes.")
    ] = False,
    plugin: PluginFiles = None,
    as_json: JsonFlag = False,
) -> None:
    """The registered rewards; ./file.py:function needs no registration."""
    from grpo_core.cli import rewards_views as views

    facts = [views.facts_of(entry, columns=columns) for entry in load_plugins(plugin).catalog.entries("reward")]
    if as_json:
        print_json(facts)
    else:
        views.show_list(facts)


@_app.command("try")
def try_reward(
    name: _Name,
    completion: Annotated[
        list[str], typer.Option(metavar="TEXT|@FILE|-", help="What a model would have written. Repeatable: a group.")
    ],
    row: Annotated[
        list[str] | None,
        typer.Option(metavar="JSON|FILE|KEY=VALUE", help="The row: its columns reach the reward. Repeatable."),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(metavar="TEXT|@FILE", help="The prompt as rendered; default: the row's question.")
    ] = None,
    set_: _Set = None,
    plugin: PluginFiles = None,
    as_json: JsonFlag = False,
) -> None:
    """Score completions that you type: the score, what the reward was called with, where it ran, how long it took.

    Exit code 4 when a score failed. For example:
    grpoctl rewards try countdown_reward --completion '<answer>3 + 4</answer>' --row 'nums=[3, 4]' --row target=7
    """
    from grpo_core.cli import rewards_views as views
    from grpo_core.trial.attempt import attempt
    from grpo_core.trial.row import make_sample, read_row
    from grpo_core.types import BuildContext

    texts = [text_of(each, "--completion") for each in completion]
    sample = make_sample(read_row(row or ()))
    recipe = reward_settings(name, set_)
    planned = planned_reward(recipe.rewards[0], load_plugins(plugin).catalog)
    tried = attempt(
        planned,
        sample,
        texts,
        prompt=sample.messages[-1].content if prompt is None else text_of(prompt, "--prompt"),
        settings=recipe.scoring,
        context=BuildContext(seed=recipe.run.seed),
    )
    if as_json:
        print_json(views.facts_of_attempt(tried))
    else:
        views.show_attempt(tried)
    if views.any_failed(tried.outcomes):
        raise typer.Exit(_FAILED)


@_app.command("test")
def run_cases_of(
    name: _Name,
    cases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Cases, JSON lines; default: those the reward ships.")
    ] = None,
    set_: _Set = None,
    plugin: PluginFiles = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a reward's unit tests: completions, columns, and what each must score. Exit code 4 when one does not."""
    from grpo_core.cli import rewards_views as views
    from grpo_core.trial.cases import read_cases
    from grpo_core.trial.testing import run_cases
    from grpo_core.types import BuildContext

    recipe = reward_settings(name, set_)
    catalog = load_plugins(plugin).catalog
    file = cases or shipped_file(recipe.rewards[0].use, catalog)

    def plan(options: Mapping[str, Any]) -> PlannedReward:
        return planned_reward(recipe.rewards[0], catalog, options)

    verdicts = run_cases(plan, read_cases(file), settings=recipe.scoring, context=BuildContext(seed=recipe.run.seed))
    if as_json:
        print_json(views.facts_of_verdicts(str(file), verdicts))
    else:
        views.show_verdicts(str(file), verdicts)
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(_FAILED)


@_app.command("audit")
def audit_reward(
    name: _Name,
    dataset: Annotated[str, typer.Option(metavar="REF", help="Rows: a name, a file or folder, hf:owner/name.")],
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="How many rows, spread over the dataset.")] = 32,
    reference_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Which column has the right answer; default: found out.")
    ] = None,
    high: Annotated[float, typer.Option(metavar="X", help="A right answer must score this on average.")] = 0.9,
    low: Annotated[float, typer.Option(metavar="X", help="What is no answer may score this on average.")] = 0.1,
    columns: Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="Rename a column. Repeatable.")] = None,
    set_: _Set = None,
    plugin: PluginFiles = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what a reward pays for, on controls made of the data, and whether its scores depend on how it is called.

    Right answers should be paid; others' answers, near misses, all answers at once, nothing, the prompt, empty tags and
    junk should not. Exit code 4 when a control fails.
    """
    from grpo_core.cli import rewards_audit_views as views
    from grpo_core.trial.audit import Bounds, audit
    from grpo_core.trial.dataset import some_rows
    from grpo_core.trial.scoring import open_scorer
    from grpo_core.types import BuildContext

    recipe = reward_settings(name, set_, dataset=dataset, columns=columns)
    catalog = load_plugins(plugin).catalog
    planned = planned_reward(recipe.rewards[0], catalog)
    taken = some_rows(recipe, rows, catalog=catalog)
    for warning in taken.warnings:
        stderr.print(f"warning: {warning}", markup=False)
    with open_scorer([planned], recipe.scoring, taken.columns, BuildContext(seed=recipe.run.seed)) as scorer:
        found = audit(scorer, taken.samples, bounds=Bounds(high=high, low=low), reference_column=reference_column)
    if as_json:
        print_json(views.facts_of_audit(found))
    else:
        views.show_audit(planned.name, found, total=taken.total)
    if found.problems:
        raise typer.Exit(_FAILED)


@_app.command("rescore")
def rescore_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    rewards: Annotated[
        str | None, typer.Option(metavar="A,B", help="Rewards, separated by commas; default: those of the run.")
    ] = None,
    reward_weights: Annotated[
        str | None, typer.Option(metavar="X,Y", help="One weight a reward, in the same order.")
    ] = None,
    step: Annotated[list[int] | None, typer.Option(metavar="N", help="Only this step. Repeatable.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write every completion, JSON lines.")
    ] = None,
    set_: _Set = None,
    plugin: PluginFiles = None,
    as_json: JsonFlag = False,
) -> None:
    """Score the completions that a run recorded again, with other rewards, options or weights: old and new means.

    The run's folder is only read. For example:
    grpoctl rewards rescore runs/a --rewards format_reward,./mine.py:near --reward-weights 0.2,1
    """
    from grpo_core.cli import rewards_rescore_views as views
    from grpo_core.cli.planning import gather, settings_of
    from grpo_core.recipe.code import code_of_model, code_of_rewards, list_code
    from grpo_core.recipe.plan import OF_A_RUN, LaunchPlan
    from grpo_core.recipe.validate import validate
    from grpo_core.trial.rescore import open_rescoring
    from grpo_core.trial.stored import step_files

    plan, files = LaunchPlan.read(run), step_files(run, step or ())
    flags = {"rewards": rewards, "reward_weights": reward_weights, "set_": set_}
    layer = gather(None, flags, below=settings_of(plan))
    recipe = validate(layer)
    settings = recipe.plugins
    catalog = load_plugins(plugin, disable=settings.disable, require=settings.require).catalog
    namespaces = layer.dotted_namespaces()
    planned = [planned_reward(entry, catalog, namespaces=namespaces) for entry in recipe.rewards]
    code = [*code_of_rewards(planned), *code_of_model(plan.recipe.model)]
    list_code(code, layer.dotted_origins(), otherwise=OF_A_RUN, to=sys.stderr)
    with views.writing(output) as write, open_rescoring(plan, run, planned, recipe.scoring, files) as steps:
        found = []
        for each in steps:
            write(each.rows)
            found.append(replace(each, rows=()))
    if as_json:
        print_json([views.facts_of_step(each) for each in found])
    else:
        views.show_rescored(found)
    for warning in views.warnings_of(found):
        stderr.print(f"warning: {warning}", markup=False)
