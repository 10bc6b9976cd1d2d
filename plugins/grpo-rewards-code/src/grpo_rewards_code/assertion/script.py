"""Test code → tests: walks its statements, unrolls loops over written-out lists, and splits each assertion.

Understands lists of assertions (MBPP), `def check(candidate)` (HumanEval), `def test_…()` with parametrisation and
`pytest.raises` (KodCode), and the assert methods of unittest. Every assertion is taken, or the whole code is refused.
"""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from grpo_rewards_code.assertion.exceptions import raising
from grpo_rewards_code.assertion.forms import split_assertion
from grpo_rewards_code.assertion.history import History
from grpo_rewards_code.assertion.loops import iterations
from grpo_rewards_code.assertion.scope import Line, Scope, free_names
from grpo_rewards_code.assertion.split import Split
from grpo_rewards_code.assertion.statements import TOOLS, after_assignment, after_effect, after_import, shown
from grpo_rewards_code.assertion.unittests import as_assertion, attributes_as_names
from grpo_rewards_code.executor.types import ExpressionRun
from grpo_rewards_code.problem.types import Problem, TestsError

__all__ = ["read_script"]

_MAX_TESTS = 2000
_MAX_CHARACTERS = 2_000_000
_USUAL_MODULES: Mapping[str, str] = {
    **{
        name: f"import {name}"
        for name in ("math", "cmath", "itertools", "functools", "collections", "numpy", "asyncio")
    },
    **{name: f"import {name}" for name in ("operator", "statistics", "random", "string", "datetime")},
    "np": "import numpy as np",
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_script(source: str, *, setup: str = "", entry_point: str | None = None) -> Problem:
    """The problem that test code states.

    `setup` comes before it; `entry_point` is what `check(candidate)` is called with. Raises `TestsError` where there is
    no test in it, or one that cannot be split.
    """
    try:
        body = _parsed(f"{setup}\n{source}" if setup.strip() else source)
        reader = _Reader(entry_point)
        reader.outermost = frozenset(map(id, body))
        scope = reader.block(body, _with_usual_modules(body))
        reader.functions(body, scope)
    except RecursionError as error:
        raise TestsError("its test code is nested too deeply") from error
    except TestsError:
        raise
    except ValueError as error:  # a number of more digits than Python writes
        raise TestsError(f"its test code cannot be written out again: {error}") from error
    if not reader.found:
        raise TestsError("its test code has no assertion that calls the program")
    imports = dict.fromkeys(line for split in reader.found for line in split.imports)
    tests = tuple(split.test for split in reader.found)
    return Problem(tests=tests, names=frozenset(reader.called), imports=tuple(imports))


def _parsed(source: str) -> list[ast.stmt]:
    if len(source) > _MAX_CHARACTERS:
        raise TestsError(f"its test code has {len(source)} characters, more than {_MAX_CHARACTERS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise TestsError(f"its test code is not Python: {error}") from error


def _with_usual_modules(body: Sequence[ast.stmt]) -> Scope:
    """The scope of test code that uses well-known modules without importing them."""
    bases = {
        each.value.id
        for statement in body
        for each in ast.walk(statement)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)
    }
    scope = Scope()
    for name in sorted(bases & _USUAL_MODULES.keys()):
        scope = scope.with_import(_USUAL_MODULES[name], [name])
    return scope.with_tool(bases & set(TOOLS))


class _Reader:
    """Collects the tests of a piece of code."""

    def __init__(self, entry_point: str | None) -> None:
        self.entry_point = entry_point
        self.outermost: frozenset[int] = frozenset()
        """The statements of the test code that stand in no other, by their ids."""
        self.found: list[Split] = []
        self.history = History()
        self.called: set[str] = set()

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> Scope:
        """Take the assertions of statements; the scope after them."""
        for statement in statements:
            if isinstance(statement, ast.Return):
                break
            scope = self.statement(statement, scope)
        return scope

    def functions(self, body: Sequence[ast.stmt], scope: Scope, ready: Sequence[Line] = ()) -> None:
        """Take the assertions of test functions, each with the module's names as they are in the end, and after what
        makes their class ready."""
        for node in body:
            if isinstance(node, ast.ClassDef) and _is_test_class(node):
                node = attributes_as_names(node)
                fixtures = [each for each in node.body if isinstance(each, _Function) and each.name in _FIXTURES]
                inner = self.block([s for each in fixtures for s in each.body], scope)
                methods = [each for each in node.body if isinstance(each, _Function)]
                self.functions(methods, inner, inner.lines[len(scope.lines) :])
            elif isinstance(node, _Function) and node.name == "check" and len(node.args.args) == 1:
                self._check(node, scope)
            elif isinstance(node, _Function) and _is_test(node.name):
                self._test_function(node, scope, ready)

    def statement(self, node: ast.stmt, scope: Scope) -> Scope:
        """Take one statement."""
        match node:
            case ast.Assert(test=test):
                splits, after = split_assertion(test, scope)
                self._take(splits)
                return after
            case ast.Import() | ast.ImportFrom():
                return after_import(node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                is_run = isinstance(node, _Function) and (_is_test(node.name) or node.name == "check")
                is_run = (is_run and id(node) in self.outermost) or (
                    isinstance(node, ast.ClassDef) and _is_test_class(node)
                )
                return scope if is_run else scope.with_helper(node)
            case ast.For(target=target, body=body, orelse=[]) if _asserts(node):
                for bound in iterations(target, node.iter, scope):
                    self.block(body, bound)
                return scope.with_asserted(node)
            case ast.With(items=[item], body=body) if isinstance(item.context_expr, ast.Call):
                expected = raising(item.context_expr, body, scope)
                if expected is not None and isinstance(item.optional_vars, ast.Name | None):
                    self._take([expected])
                    caught = item.optional_vars
                    scope = scope.with_parts(expected.parts)
                    return scope if caught is None else scope.with_tool([caught.id])
                if ast.unparse(item.context_expr.func) == "self.subTest":
                    return self.block(body, scope)
            case ast.Try(handlers=[handler], orelse=[], finalbody=[]) if _asserts(node):
                tried = _tried(node, handler, scope)
                self._take([tried])
                return scope.with_parts(tried.parts)
            case ast.If(test=test) if _is_main_guard(test) and not _asserts(node):
                return scope
            case ast.Assign() | ast.AnnAssign(value=ast.expr()):
                return after_assignment(node, scope)
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Global() | ast.Nonlocal():
                return scope
            case ast.Expr(value=ast.Call() as call):
                return self._called(node, call, scope)
        if _asserts(node):
            raise TestsError(f"its tests stand in a statement that cannot be taken apart: {shown(node)}")
        return after_effect(node, scope)

    def _called(self, node: ast.Expr, call: ast.Call, scope: Scope) -> Scope:
        asserted = as_assertion(call)
        if asserted is not None:
            return self.block([asserted], scope)
        if len(call.args) > 1 and ast.unparse(call.func) in ("pytest.raises", "self.assertRaises"):
            inner = ast.Expr(ast.Call(call.args[1], call.args[2:], call.keywords))
            expected = raising(ast.Call(call.func, call.args[:1], []), [inner], scope)
            self._take([expected] if expected is not None else [])
            return scope if expected is None else scope.with_parts(expected.parts)
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name == "check" and len(call.args) > 1:  # another one than `check(candidate)`
            raise TestsError(f"its assertions stand in a function that tests call: {name}")
        if scope.helpers.get(name):
            raise TestsError(f"its assertions stand in a function that tests call: {name}")
        if name in ("print", "check") or _is_test(name) or name in _HARMLESS:
            return scope
        if ast.unparse(call.func) in ("unittest.main", "pytest.main", "doctest.testmod"):
            return scope
        return after_effect(node, scope)

    def _check(self, node: _Function, scope: Scope) -> None:
        if not self.entry_point:
            raise TestsError("its tests are check(candidate), and no column entry_point says what the candidate is")
        candidate = ast.Name(self.entry_point, ast.Load())
        self.called.add(self.entry_point)
        target = ast.Assign([ast.Name(node.args.args[0].arg, ast.Store())], candidate, lineno=1)
        self.block(node.body, scope.with_line(target, {node.args.args[0].arg}, by_program=True))

    def _test_function(self, node: _Function, scope: Scope, ready: Sequence[Line]) -> None:
        names = [each.arg for each in node.args.args if each.arg not in ("self", "cls")]
        scopes: Iterable[Scope] = [scope]
        for decorator in node.decorator_list:
            if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.parametrize")):
                continue
            if len(decorator.args) < 2:
                raise TestsError(f"its parametrisation cannot be read: {shown(decorator)}")
            target = _parameters(decorator.args[0])
            names = [name for name in names if name not in free_or_stored(target)]
            scopes = [inner for outer in scopes for inner in iterations(target, decorator.args[1], outer)]
        if names:
            raise TestsError(f"its test {node.name} takes a fixture that is not known: {', '.join(names)}")
        for each in scopes:
            self.history.add(ready)
            self.block(node.body, each)

    def _take(self, splits: Sequence[Split]) -> None:
        for split in splits:
            replay = self.history.add_split(split)
            self.found.append(replace(split, test=replace(split.test, replay=replay)))
        if len(self.found) > _MAX_TESTS:
            raise TestsError(f"its test code has more than {_MAX_TESTS} assertions")
        for split in splits:
            for run in split.test.runs:
                assert isinstance(run, ExpressionRun)
                tree = ast.parse(f"{run.setup}\n{run.expression}")
                calls = (each.func for each in ast.walk(tree) if isinstance(each, ast.Call))
                unset = [name for name in free_names(tree) - _stored_names(tree) if name.startswith("_self_")]
                if unset:
                    raise TestsError(f"a test reads what its class never sets: {unset[0].replace('_self_', 'self.')}")
                self.called |= {each.id for each in calls if isinstance(each, ast.Name)} - vars(builtins).keys()


_FIXTURES = ("setUp", "setup_method", "setUpClass")
_HARMLESS = ("setattr", "exit", "quit", "breakpoint", "help")


def free_or_stored(target: ast.expr) -> set[str]:
    """The names in the target of an assignment."""
    return {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}


def _stored_names(tree: ast.AST) -> set[str]:
    """The names that a tree gives a value."""
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}


def _is_test(name: str) -> bool:
    return name.startswith("test")


def _is_test_class(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)


def _asserts(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Assert) or (isinstance(each, ast.Call) and as_assertion(each) is not None)
        for each in ast.walk(node)
    )


def _is_main_guard(test: ast.expr) -> bool:
    return "__name__" in free_names(test)


def _tried(node: ast.Try, handler: ast.ExceptHandler, scope: Scope) -> Split:
    """`try: f(-1); assert False` with `except ValueError: pass` (or `assert True`)."""
    kind = handler.type
    quiet = all(_is_quiet(each) for each in handler.body)
    *body, last = node.body
    if kind is None or not quiet or not body or not _is_failure(last):
        raise TestsError(f"its tests stand in a statement that cannot be taken apart: {shown(node)}")
    call = ast.Call(ast.Attribute(ast.Name("pytest", ast.Load()), "raises", ast.Load()), [kind], [])
    expected = raising(call, body, scope)
    if expected is None:
        raise TestsError(f"its tests stand in a statement that cannot be taken apart: {shown(node)}")
    return expected


def _is_quiet(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Assert(test=ast.Constant(value=True)):
            return True
    return False


def _is_failure(node: ast.stmt) -> bool:
    match node:
        case (
            ast.Assert(test=ast.Constant(value=False))
            | ast.Raise(exc=ast.Name(id="AssertionError") | ast.Call(func=ast.Name(id="AssertionError")))
        ):
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return ast.unparse(func) in ("pytest.fail", "self.fail")
    return False


def _parameters(node: ast.expr) -> ast.expr:
    """`"a, expected"` or `["a", "expected"]` as the target of a loop."""
    match node:
        case ast.Constant(value=str() as text):
            names = [name.strip() for name in text.split(",") if name.strip()]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            names = [str(item.value) for item in items if isinstance(item, ast.Constant)]
        case _:
            raise TestsError(f"its parametrisation cannot be read: {shown(node)}")
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
    return targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
