"""Test code → a script to run: is it Python, does it check anything, and which names does it take from the program?

Place in the flow: row → **script** → sandbox → verdict.
"""

from __future__ import annotations

import ast
import warnings

from grpo_rewards_code.problem.types import Problem, Script, TestsError
from grpo_rewards_code.script.inside.marks import checks_in, names_of_program

__all__ = ["read_script"]

_MAX_CHARACTERS = 2_000_000


def read_script(source: str, *, setup: str = "", entry_point: str | None = None) -> Problem:
    """The problem that test code states.

    `setup` comes before it; `entry_point` is what `check(candidate)` is called with. Raises `TestsError` where it is
    not Python, or has no check in it that could concern the program.
    """
    whole = f"{setup}\n{source}" if setup.strip() else source
    tree = _parsed(whole)
    try:
        checks = checks_in(tree)
        names, shadowed = names_of_program(tree, entry_point)
    except RecursionError as error:
        raise TestsError("its test code is nested too deeply") from error
    if not entry_point and _needs_candidate(tree):
        raise TestsError("its tests are check(candidate), and no column entry_point says what the candidate is")
    if not checks or not (names or shadowed or _imports_program(tree)):
        raise TestsError("its test code has no assertion that calls the program")
    script = Script(source=whole, entry_point=entry_point, checks=checks)
    return Problem(tests=(), script=script, names=frozenset(names or shadowed))


def _parsed(source: str) -> ast.Module:
    if len(source) > _MAX_CHARACTERS:
        raise TestsError(f"its test code has {len(source)} characters, more than {_MAX_CHARACTERS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            compile(source, "<test code>", "exec", dont_inherit=True)
            return tree
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise TestsError(f"its test code is not Python: {error}") from error


def _imports_program(tree: ast.Module) -> bool:
    return any(isinstance(each, ast.ImportFrom) and each.names[0].name == "*" for each in ast.walk(tree))


def _needs_candidate(tree: ast.Module) -> bool:
    """Whether the checks stand in a `check(candidate)` that nobody calls."""
    defined = any(
        isinstance(each, ast.FunctionDef) and each.name == "check" and len(each.args.args) == 1 for each in tree.body
    )
    return defined and not any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "check"
        for each in ast.walk(tree)
    )
