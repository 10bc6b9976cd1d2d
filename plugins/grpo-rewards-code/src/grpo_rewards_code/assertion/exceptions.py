"""`with pytest.raises(ValueError): f(-1)` → a run that says which exception came, and a check of that outside.

Only built-in exceptions can be expected: which classes of its own a program raises is its own affair.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Sequence

from grpo_rewards_code.assertion.scope import Scope
from grpo_rewards_code.assertion.split import Split
from grpo_rewards_code.executor.types import ExpressionRun
from grpo_rewards_code.problem.types import Check, Raises, Shell, Test, TestsError

__all__ = ["raising"]

_RAISED = "_raised_"
_RUN = """\
_raised_ = None
try:
{body}
except BaseException as _error_:
    _kinds_ = [kind.__name__ for kind in type(_error_).__mro__ if kind.__module__ == "builtins"]
    _raised_ = (_kinds_[0], str(_error_))
"""


def raising(call: ast.Call, body: Sequence[ast.stmt], scope: Scope) -> Split | None:
    """The test that a block ends with an exception; None when the call is not about exceptions.

    Raises `TestsError` when the exception is not a built-in one.
    """
    if ast.unparse(call.func) not in ("pytest.raises", "raises", "self.assertRaises", "self.assertRaisesRegex"):
        return None
    if not call.args:
        raise TestsError(f"a test expects an exception and does not say which: {ast.unparse(call)}")
    kinds = _kinds(call.args[0])
    pattern = next((each.value for each in call.keywords if each.arg == "match"), None)
    if pattern is None and len(call.args) > 1:
        pattern = call.args[1]
    if any(isinstance(each, ast.Assert) for statement in body for each in ast.walk(statement)):
        raise TestsError("a test has assertions inside the block that must raise")
    module = ast.Module(list(body), [])
    setup, imports = scope.setup(module, beside=True)
    block = textwrap.indent("\n".join(map(ast.unparse, body)), "    ")
    before = _RUN.format(body=block)
    run = ExpressionRun(expression=_RAISED, setup=f"{setup}\n{before}")
    test = Test(runs=(run,), check=_check(kinds, pattern, scope), repeats=scope.repeats(module))
    return Split(test=test, imports=imports, parts=(scope.part(before),), scope=scope, before=before, value=_RAISED)


def _check(kinds: tuple[str, ...], pattern: ast.expr | None, scope: Scope) -> Check:
    if pattern is None:
        return Raises(kinds=kinds)
    setup, _ = scope.setup(pattern, beside=False)
    expression = (
        f"_value_0_ is not None and issubclass(getattr(__import__('builtins'), _value_0_[0]), ({', '.join(kinds)},)) "
        f"and __import__('re').search({ast.unparse(pattern)}, _value_0_[1]) is not None"
    )
    return Shell(expression=expression, setup=setup)


def _kinds(node: ast.expr) -> tuple[str, ...]:
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    names = tuple(each.id if isinstance(each, ast.Name) else ast.unparse(each) for each in nodes)
    for name in names:
        kind = getattr(builtins, name, None)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TestsError(f"a test expects {name}, which is no built-in exception")
    return names
