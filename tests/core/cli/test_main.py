from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core import __version__
from grpo_core.cli.main import show_error
from grpo_core.errors import PluginError, Problem, RecipeError, UsageError


def grpoctl(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "grpo_core", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def interrupting(tmp_path: Path) -> Path:
    file = tmp_path / "interrupting.py"
    file.write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    return file


def test_the_version_is_printed() -> None:
    done = grpoctl("--version")
    assert (done.returncode, done.stdout) == (0, f"grpoctl {__version__}\n")


def test_without_a_command_the_help_is_shown_under_the_commands_own_name() -> None:
    done = grpoctl()
    assert done.returncode == 2
    assert "Usage: grpoctl [OPTIONS] COMMAND" in done.stdout + done.stderr


def test_an_unknown_flag_is_a_usage_error() -> None:
    done = grpoctl("plugins", "list", "--jsno")
    assert done.returncode == 2
    assert "--jsno" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_is_what_is_wrong_then_what_to_do_without_a_traceback() -> None:
    done = grpoctl("plugins", "show", "grpo-reward-math")
    assert done.returncode == 3
    assert done.stdout == ""
    error, advice = done.stderr.splitlines()
    assert error == "error: there is no plugin or component 'grpo-reward-math'"
    assert advice.startswith("  Did you mean 'grpo-rewards-math'")


@pytest.mark.parametrize("arguments", [("--debug", "plugins", "show", "x"), ("plugins", "show", "x", "--debug")])
def test_debug_anywhere_adds_the_traceback(arguments: tuple[str, ...]) -> None:
    done = grpoctl(*arguments)
    assert done.returncode == 3
    assert "Traceback (most recent call last)" in done.stderr
    assert "error: there is no plugin or component 'x'" in done.stderr


def test_ctrl_c_ends_with_130_and_no_traceback(interrupting: Path) -> None:
    done = grpoctl("plugins", "list", "--plugin", str(interrupting))
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("plugins", "list"), ("plugins", "list", "--json"), ("plugins", "--help")])
def test_a_reader_that_goes_away_is_no_error(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "grpo_core", *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.stderr == ""


def test_each_error_has_its_exit_code_and_keeps_its_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_error(UsageError("rewards[0] is [red]", hint="Write [a]\nor [b]."), debug=False) == 2
    assert capsys.readouterr().err == "error: rewards[0] is [red]\n  Write [a]\n  or [b].\n"
    assert show_error(PluginError("gone"), debug=False) == 3
    assert capsys.readouterr().err == "error: gone\n"


def test_all_problems_of_a_recipe_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [Problem(path="run.steps", message="is 0"), Problem(path="model", message="is missing")]
    assert show_error(RecipeError(problems), debug=False) == 2
    assert capsys.readouterr().err == ("error: the recipe has 2 problems:\n  run.steps: is 0\n  model: is missing\n")


def test_a_fault_of_the_program_says_how_to_see_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_error(ValueError("odd"), debug=False) == 4
    assert capsys.readouterr().err == (
        "error: ValueError: odd\n  This is a fault in the program. Run it again with --debug for the traceback.\n"
    )
    assert show_error(ValueError("odd"), debug=True) == 4
    assert "--debug" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device", "runs/a/x"), "error: 'runs/a/x': No space left on device"),
        (ConnectionRefusedError(111, "Connection refused"), "error: Connection refused"),
        (TimeoutError(), "error: TimeoutError"),
        (MemoryError(), "error: there is not enough memory"),
    ],
)
def test_what_the_machine_refuses_is_no_fault_in_the_program(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show_error(error, debug=False) == 4
    shown = capsys.readouterr().err
    assert shown.startswith(f"{said}\n")
    assert "--debug to see where it was" in shown
    assert "fault in the program" not in shown
