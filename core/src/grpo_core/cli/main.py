"""`grpoctl`: the commands, and how errors leave the program.

Command modules import nothing heavy at module level, so `--help` stays fast; each does its imports when it runs.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text
from typer.core import TyperGroup

from grpo_core import __version__
from grpo_core.cli.console import print_utf8, stderr
from grpo_core.ending import as_error, end, words_before_the_end
from grpo_core.errors import GrpoError
from grpo_core.openmp import let_waiting_threads_sleep
from grpo_core.regular_files import shown

__all__ = ["build_app", "main", "run", "show_error"]

_MODULES = ("train", "resume", "evaluate", "rollout", "report", "recipe", "datasets", "rewards", "plugins")
_INTERRUPTED = 130
_WHERE = "Run it again with --debug to see where it was."


def main() -> NoReturn:
    """The console script; ends the process with the code of `run`, whatever plugins left running."""
    end(run())


def run() -> int:
    """Carry out the command line; gives 0, 2 (usage, recipe), 3 (plugin), 4 (run failed) or 130 (Ctrl-C)."""
    print_utf8()
    let_waiting_threads_sleep()
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]  # it may stand after any command
    if debug:
        os.environ["GRPO_DEBUG"] = "1"  # for the processes that a run starts
    try:
        with words_before_the_end():
            build_app()(prog_name="grpoctl")
    except SystemExit as ended:  # the command line ends so, however it went
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  the last place where one can be shown decently
        return show_error(error, debug=debug)
    return 0


class _Commands(TyperGroup):
    """The commands; code in them that is not ours cannot end the program as if all had gone well."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SystemExit as ended:
            if isinstance(ended.__context__, BrokenPipeError):
                raise  # rich: whoever read the output has gone
            raise as_error(ended) from ended


def build_app() -> typer.Typer:
    """The command line with all its commands; imports their modules, which are light."""
    app = typer.Typer(
        cls=_Commands,
        help="GRPO training made of plugins.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in _MODULES:
        importlib.import_module(f"grpo_core.cli.{name}").register(app)
    return app


def show_error(error: Exception, *, debug: bool) -> int:
    """Print on stderr what is wrong, what to do and the notes on it, after the traceback if `debug`; gives the exit
    code."""
    if debug:
        stderr.print(Text("".join(traceback.format_exception(error)).rstrip()))
    if isinstance(error, GrpoError):
        message, hint, code = error.message, error.hint, error.exit_code
    elif isinstance(error, OSError | MemoryError):  # the machine's refusal
        message, hint, code = _refusal(error), None if debug else _WHERE, GrpoError.exit_code
    else:
        message = f"{type(error).__name__}: {error}"
        hint = None if debug else "This is a fault in the program. Run it again with --debug for the traceback."
        code = GrpoError.exit_code
    stderr.print(Text.assemble(("error:", "bold red"), " ", message))
    notes = getattr(error, "__notes__", ())
    for line in "\n".join(filter(None, [hint, *notes])).splitlines():
        stderr.print(Text(f"  {line}"))
    return code


def _refusal(error: OSError | MemoryError) -> str:
    """What the machine would not do, and with which file."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory{f': {error}' if str(error) else ''}"
    reason = error.strerror or str(error) or type(error).__name__
    return reason if error.filename is None else f"{shown(str(error.filename))}: {reason}"


def _print_version(given: bool) -> None:
    if given:
        typer.echo(f"grpoctl {__version__}")
        raise typer.Exit


_Version = Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)]
_Debug = Annotated[bool, typer.Option("--debug", help="Show an error's traceback. May stand after a command, too.")]


def _options(version: _Version = False, debug: _Debug = False) -> None:
    pass  # `--version` acts in its callback; `main` takes `--debug` out before the commands are parsed
