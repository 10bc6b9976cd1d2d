"""Finds the program in a completion: the last fenced one, or what stands there without a fence.

At most a few texts are parsed, to tell programs from other blocks; nothing is compiled or executed. Time grows with the
length of the completion, whatever it holds.

Place in the flow: **completion → program**, row → problem → job → run results → comparison → score.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
import warnings
from collections.abc import Collection, Sequence

from grpo_rewards_code.program.answer import answer_block, spoken_part
from grpo_rewards_code.program.fences import Fence, fences, unquoted

__all__ = ["find_program", "parse"]

_MAX_PARSED_CHARACTERS = 200_000
"""Longer texts are not parsed to choose between them."""
_CODE_START = re.compile(
    r"(import|from|def|class|async|for|while|if|try|with|print|raise|pass)\b|[@#]|[A-Za-z_][\w.\[\], ]*(=|\()"
)
_BUILTINS = frozenset(vars(builtins))
_BYTE_ORDER_MARK = re.compile(r"(^[ \t]*|>[ \t]*)\ufeff+", re.MULTILINE)
"""Where a text, a block or a program begins; Python takes none but a file's first character."""
_MAX_HELPERS = 10
_SESSION = (">>>", "$ ", "In [")
_MAX_CUTS = 12
_MAX_FENCE_MARKS = 2_000
"""No answer has more of them; each costs a look at its line several times, while others wait."""


def find_program(completion: str, wanted: Collection[str] = (), *, in_thought: bool = False) -> str | None:
    """The program that a completion answers with; None where there is none, or nothing but fences.

    `wanted` are names that the tests call: of several blocks, the last that defines one of them is taken, else the
    last. `in_thought`: the prompt has already opened the thinking.
    """
    plain = _BYTE_ORDER_MARK.sub(r"\1", completion.replace("\r\n", "\n").replace("\r", "\n"))
    if plain.count("```") + plain.count("~~~") > _MAX_FENCE_MARKS:
        return None
    spoken = spoken_part(plain, in_thought=in_thought)
    if spoken is None:
        return None
    spoken = unquoted(spoken)
    answer = answer_block(spoken)
    program = _program(spoken if answer is None else answer, wanted)
    if not (program or "").strip() and answer is not None and not fences(answer):  # `<answer>See above.</answer>`
        blocks = fences(spoken)
        program = _chosen(blocks, wanted) if blocks else None
    return program if program and program.strip() else None


def _program(text: str, wanted: Collection[str]) -> str | None:
    blocks = fences(text)
    return _chosen(blocks, wanted) if blocks else _unfenced(text)


def parse(text: str) -> ast.Module | SyntaxError | None:
    """The syntax tree of a text, or the error that it has; None when it is too long or too deep to say."""
    if len(text) > _MAX_PARSED_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, MemoryError, RecursionError):
        return None


def _chosen(blocks: Sequence[Fence], wanted: Collection[str]) -> str:
    """The last block that is a program: marked as Python, else unmarked and looking like one, else any."""
    python = [block.content for block in blocks if block.is_python]
    plain = [block.content for block in blocks if not block.language]
    for texts in (python, [text for text in plain if _looks_like_program(text)], plain):
        programs = [text for text in texts if not text.lstrip().startswith(_SESSION)]
        if any(text.strip() for text in programs):
            return _last_that_defines(programs, wanted)
    return python[-1] if python else blocks[-1].content


def _last_that_defines(programs: Sequence[str], wanted: Collection[str]) -> str:
    if len(programs) > 1 and wanted:
        for place in range(len(programs) - 1, -1, -1):
            if not _defined(programs[place]).isdisjoint(wanted):
                return _with_helpers(programs[: place + 1])
    return programs[-1]


def _with_helpers(programs: Sequence[str]) -> str:
    """The last program, after those before it that only define what it uses and does not define itself."""
    kept = [programs[-1]]
    missing = _missing(programs[-1])
    for text in reversed(programs[:-1]):
        if not missing or len(kept) > _MAX_HELPERS:
            break
        tree = parse(text)
        if not isinstance(tree, ast.Module) or not all(map(_only_defines, tree.body)):
            continue
        names = {name for statement in tree.body for name in _bound_by(statement)}
        if not names.isdisjoint(missing):
            kept.insert(0, text)
            missing = (missing - names) | (_missing(text) - names)
    return "\n".join(kept)


def _missing(text: str) -> set[str]:
    """Names that a program reads and never gives a value."""
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return set()
    nodes = list(ast.walk(tree))
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {name for node in nodes if isinstance(node, ast.stmt) for name in _bound_by(node)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return read - own - _BUILTINS


def _only_defines(node: ast.stmt) -> bool:
    """Whether a statement of a program gives names a value and does nothing else."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
        return not any(isinstance(each, ast.Call) for each in ast.walk(node))
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)


def _bound_by(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [(each.asname or each.name).partition(".")[0] for each in node.names]
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return [each.id for each in targets if isinstance(each, ast.Name)]
    return []


def _defined(text: str) -> set[str]:
    """Names that a program defines, methods of its classes included."""
    tree = parse(text)
    names: set[str] = set()
    for node in ast.walk(tree) if isinstance(tree, ast.Module) else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _looks_like_program(text: str) -> bool:
    """Whether a text without a mark is Python that does something; sample input and output are not."""
    tree = parse(text)
    if tree is None:
        return bool(text)
    return isinstance(tree, ast.Module) and any(
        not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Call) for statement in tree.body
    )


def _unfenced(text: str) -> str | None:
    """A program that stands in the text without a fence, with sentences before or after it."""
    lines = textwrap.dedent(text.strip("\n")).split("\n")
    if len(lines) == 1 and isinstance(parse(lines[0].strip("` ")), ast.Module):
        return lines[0].strip("` ")
    start = _next_code(lines, 0)
    for _ in range(_MAX_CUTS):
        if start is None:
            return None
        lines = lines[start:]
        tree = parse("\n".join(lines))
        if not isinstance(tree, SyntaxError):
            return "\n".join(lines)
        broken = tree.lineno or 1
        start = 0
        if broken > 1:
            lines = lines[: broken - 1]
        else:
            start = _next_code(lines, 1)
    return None


def _next_code(lines: Sequence[str], first: int) -> int | None:
    return next((index for index in range(first, len(lines)) if _CODE_START.match(lines[index])), None)
