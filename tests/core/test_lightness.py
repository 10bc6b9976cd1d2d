"""What must stay light: plugins' entry modules, every `--help`, and listing plugins. Each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

ENGINES = ("torch", "transformers", "datasets", "numpy")
RECIPES = ("grpo_core.recipe.schema",)

EVERY_HELP = """
import contextlib, io, sys
from typer.main import get_command
from grpo_core.cli import main as cli

def commands(command, path=()):
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))

paths = list(commands(get_command(cli.build_app())))
for path in paths:
    sys.argv = ["grpoctl", *path, "--help"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli.main()
    assert "Usage: grpoctl " + " ".join(path) in printed.getvalue(), printed.getvalue()
    heavy = [module for module in FORBIDDEN if module in sys.modules]
    assert not heavy, f"grpoctl {' '.join(path)} --help imports {heavy}"
print(*(" ".join(path) for path in paths), sep="\\n")
"""

LIST_PLUGINS = """
import contextlib, sys
from grpo_core.cli import main as cli
sys.argv = ["grpoctl", "plugins", *ARGUMENTS]
with contextlib.suppress(SystemExit):
    cli.main()
heavy = [module for module in FORBIDDEN if module in sys.modules]
assert not heavy, f"grpoctl plugins imports {heavy}"
"""

IMPORT_API = """
import sys
import grpo_core.api
heavy = [module for module in FORBIDDEN if module in sys.modules]
assert not heavy, f"grpo_core.api imports {heavy}"
"""


def run(code: str, **names: object) -> str:
    head = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    done = subprocess.run([sys.executable, "-c", f"{head}\n{code}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_help_of_any_command_imports_an_engine_or_a_recipes_model() -> None:
    paths = run(EVERY_HELP, FORBIDDEN=(*ENGINES, *RECIPES)).splitlines()
    assert {"", "plugins", "plugins list", "plugins show", "plugins doctor", "train", "resume", "recipe"} <= set(paths)


def test_listing_plugins_imports_them_and_no_engine() -> None:
    assert "grpo-core" in run(LIST_PLUGINS, FORBIDDEN=(*ENGINES, *RECIPES), ARGUMENTS=["list"])
    # It looks at the options models, and those of backends may know the settings that they go with.
    assert "grpo-core" in run(LIST_PLUGINS, FORBIDDEN=ENGINES, ARGUMENTS=["doctor"])


def test_what_plugin_authors_import_is_light() -> None:
    run(IMPORT_API, FORBIDDEN=(*ENGINES, *RECIPES))
