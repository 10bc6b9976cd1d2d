"""`grpoctl`: the commands, and how errors leave the program.

Command modules import nothing heavy at module level, so `--help` stays fast; each does its imports when it runs.
"""

from __future__ import annotations

import importlib
import sys
import traceback

import typer

from grpo_core.cli.console import stderr
from grpo_core.errors import GrpoError

__all__ = ["app", "main"]

app = typer.Typer(
    name="grpoctl",
    help="GRPO training made of plugins.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_MODULES = ("train", "resume", "evaluate", "recipe", "datasets", "plugins")


def _add_commands() -> None:
    for name in _MODULES:
        importlib.import_module(f"grpo_core.cli.{name}").register(app)


def main() -> None:
    """The console script."""
    _add_commands()
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except GrpoError as error:
        if debug:
            traceback.print_exc()
        stderr.print(f"[bold red]error:[/] {type(error).__name__}")
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
