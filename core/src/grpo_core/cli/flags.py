"""The flags for what people set every day: what each is called, the setting it is, and its help.

`grpoctl train`, `eval` and `recipe check | explain` take the same ones, and docs/configuration.md lists them. Every
other setting is reached with `--set`. Values are text here; `planning` turns them into settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from grpo_core.cli.common import PluginFiles

__all__ = ["FLAGS", "Flag", "flags_table", "takes_flags"]

Form = Literal["text", "number", "list", "renames", "datasets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag that is a setting."""

    name: str
    """`--learning-rate`."""
    path: tuple[str, ...]
    """The setting: `("trainer", "learning_rate")`."""
    help: str
    """One line."""
    metavar: str
    """What stands for its value in the help."""
    panel: str
    """Under which heading the help lists it."""
    form: Form = "text"
    """Text as it is, a number, names between commas, old=new pairs (repeatable), or datasets between commas."""

    @property
    def parameter(self) -> str:
        """Its name in Python."""
        return self.name.lstrip("-").replace("-", "_")


def _flag(name: str, path: str, metavar: str, help: str, panel: str, form: Form | None = None) -> Flag:
    is_number = metavar in ("N", "X")
    return Flag(
        name=name,
        path=tuple(path.split(".")),
        help=help,
        metavar=metavar,
        panel=panel,
        form=form or ("number" if is_number else "text"),
    )


_WHAT, _ROLLOUT, _UPDATE, _RUN = "Model, data and rewards", "Rollout", "Update", "Run"

FLAGS: tuple[Flag, ...] = (
    _flag("--model", "model.path", "PATH", "Folder in Hugging Face layout, GGUF file, or hub id.", _WHAT),
    _flag("--dataset", "dataset.use", "REF", "Training data: a name, a file, hf:owner/name#500.", _WHAT, "datasets"),
    _flag("--max-pixels", "model.max_pixels", "N", "Most pixels of an image; else the variable MAX_PIXELS.", _WHAT),
    _flag("--dataset-weights", "dataset.mix.*.weight", "X,Y", "Shares of several datasets.", _WHAT, "list"),
    _flag("--eval-dataset", "dataset.evaluation", "REF", "Data to evaluate on; never trained on.", _WHAT),
    _flag("--eval-rows", "dataset.evaluation_rows", "N", "How many rows to evaluate on.", _WHAT),
    _flag("--rewards", "rewards", "A,B", "Rewards: names or ./file.py:function, separated by commas.", _WHAT, "list"),
    _flag("--reward-weights", "rewards.*.weight", "X,Y", "One weight a reward, in the same order.", _WHAT, "list"),
    _flag("--system", "dataset.system", "TEXT|FILE", "System prompt.", _WHAT),
    _flag("--columns", "dataset.columns", "OLD=NEW", "Rename a column. Repeatable.", _WHAT, "renames"),
    _flag("--max-prompt-tokens", "dataset.max_prompt_tokens", "N", "Longest prompt allowed.", _WHAT),
    _flag("--rollout", "rollout.use", "NAME", "Rollout backend.", _ROLLOUT),
    _flag("--completions-per-prompt", "rollout.completions_per_prompt", "N", "Size of a group, G.", _ROLLOUT),
    _flag("--max-completion-tokens", "rollout.max_completion_tokens", "N", "Longest completion.", _ROLLOUT),
    _flag("--temperature", "rollout.temperature", "X", "Sampling temperature.", _ROLLOUT),
    _flag("--trainer", "trainer.use", "NAME", "Trainer backend.", _UPDATE),
    _flag("--learning-rate", "trainer.learning_rate", "X", "Peak learning rate.", _UPDATE),
    _flag("--loss", "objective.loss", "NAME", "grpo, dr_grpo, dapo, cispo, sapo, gspo.", _UPDATE),
    _flag("--beta", "objective.beta", "X", "Weight of the KL divergence from the reference model.", _UPDATE),
    _flag("--num-iterations", "trainer.num_iterations", "N", "Passes over the completions of a step.", _UPDATE),
    _flag("--minibatches", "trainer.minibatches", "N", "Optimiser updates of one pass.", _UPDATE),
    _flag("--lora-rank", "trainer.lora.rank", "N", "Train low-rank adapters of this rank, not all weights.", _UPDATE),
    _flag("--precision", "trainer.precision", "NAME", "fp32 or bf16.", _UPDATE),
    _flag("--steps", "run.steps", "N", "How many steps; instead of --epochs.", _RUN),
    _flag("--epochs", "run.epochs", "X", "How many passes over the training rows.", _RUN),
    _flag("--prompts-per-step", "run.prompts_per_step", "N", "Prompts of one step.", _RUN),
    _flag("--completions-per-step", "run.completions_per_step", "N", "The same, counted in completions.", _RUN),
    _flag("--eval-steps", "evaluation.every_steps", "N", "Evaluate every so many steps.", _RUN),
    _flag("--save-steps", "run.save_steps", "N", "Write a checkpoint every so many steps.", _RUN),
    _flag("--save-minutes", "run.save_minutes", "X", "Write one every so many minutes; null: never.", _RUN),
    _flag("--save-total-limit", "run.save_total_limit", "N", "Keep the newest so many checkpoints.", _RUN),
    _flag("--save-best", "run.save_best", "METRIC", "Keep the model with the best eval/accuracy, say, in best/.", _RUN),
    _flag("--report-to", "run.report_to", "A,B", "Trackers: tensorboard, wandb, trackio.", _RUN, "list"),
    _flag("--logging-steps", "run.logging_steps", "N", "Show every so many steps.", _RUN),
    _flag("--seed", "run.seed", "N", "Of data order and sampling.", _RUN),
    _flag("--output", "run.directory", "DIR", "The run's folder.", _RUN),
)

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting: rollout.top_p=0.9. Repeatable; wins over flags."),
]


def takes_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, which takes `**flags`, every flag as an option, and `--set` and `--plugin`."""
    signature = inspect.signature(command, eval_str=True)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    shared = [_parameter("set_", SetOption), _parameter("plugin", PluginFiles)]
    generated = [_parameter(flag.parameter, _option(flag)) for flag in FLAGS]
    command.__signature__ = signature.replace(parameters=[*own, *generated, *shared])  # type: ignore[attr-defined]
    return command


def flags_table() -> str:
    """Markdown: each flag, its setting and its meaning."""
    lines = ["| Flag | Setting | Meaning |", "| --- | --- | --- |"]
    for flag in FLAGS:
        written = f"`{flag.name} {flag.metavar}`".replace("|", "\\|")
        lines.append(f"| {written} | `{'.'.join(flag.path)}` | {flag.help} |")
    return "\n".join(lines) + "\n"


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _option(flag: Flag) -> Any:
    kind = list[str] | None if flag.form == "renames" else str | None
    option = typer.Option(
        flag.name, metavar=flag.metavar, help=flag.help, rich_help_panel=flag.panel, show_default=False
    )
    return Annotated[kind, option]
