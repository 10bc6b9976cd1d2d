"""One assertion → tests: what runs beside the program, and how what comes back is judged.

f(x) == 5            f(x) runs; its value is compared with 5 here
f(x) == g(y)         where g is the test's own: it is evaluated apart, once a row
abs(f(x) - 1.5) < e  f(x) runs; 1.5 and e stay here; likewise math.isclose, pytest.approx, numpy.allclose
f(x) in (1, 2), f(x) is None, f(x), not f(x), a and b
1 < f(x) < 3, …      whatever else: f(x) runs, and the rest is evaluated apart with its value filled in
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from grpo_rewards_code.assertion.beside import asks_an_object, is_beside, is_object
from grpo_rewards_code.assertion.dunders import with_operators
from grpo_rewards_code.assertion.inline import inlined
from grpo_rewards_code.assertion.loops import iterations
from grpo_rewards_code.assertion.scope import Line, Scope, free_names, keep_apart
from grpo_rewards_code.assertion.split import Split
from grpo_rewards_code.executor.types import ExpressionRun
from grpo_rewards_code.problem.types import Check, Close, Equal, Later, Member, Shell, Test, TestsError, Truth

__all__ = ["split_assertion"]

_AS_LISTS = "(lambda given: given.tolist() if hasattr(given, 'tolist') else given)({})"
_EXACT_CLASSES: tuple[str, ...] = (
    *("bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "range", "set", "str", "tuple"),
    *("Decimal", "Fraction", "OrderedDict", "deque", "type(None)", "NoneType"),
)
_DATA_CLASSES: tuple[str, ...] = (*_EXACT_CLASSES, "object", "Iterable", "Sequence", "Mapping", "Number")
_FLIPPED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Is: ast.Is,
    ast.IsNot: ast.IsNot,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def split_assertion(node: ast.expr, scope: Scope) -> tuple[list[Split], Scope]:
    """The tests that an asserted expression is, none for one that does not involve the program; and the scope after it.

    Raises `TestsError` when the program's part cannot be separated.
    """
    found: list[Split] = []
    after = scope
    for each in _anded(node):
        seen = _with_what_it_changed(each, after)
        for part, inner in _conjuncts(each, seen):
            here = seen if inner is None else inner
            splits = _of_one(part, here)
            found += (replace(split, scope=here) for split in splits)
            if inner is None:  # the variable of a loop is gone after it
                parts = [line for split in splits for line in split.parts]
                after, seen = after.with_parts(parts), seen.with_parts(parts)
        if scope.mentions_program(each):
            after = after.with_asserted(each)
    return found, after


def _anded(node: ast.expr) -> Iterator[ast.expr]:
    """What must hold, as it is written: `a` and `b` of `a and b`."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for value in node.values:
            yield from _anded(value)
    else:
        yield node


def _with_what_it_changed(node: ast.expr, scope: Scope) -> Scope:
    """The scope of an assertion about what the program was given before, and may have changed; raises `TestsError`
    where that cannot be read."""
    if scope.mentions_program(node):
        return scope
    read, given = free_names(node), scope.passed | scope.given()
    if changed := read & given:
        scope = scope.with_changes(changed)
    _, reached = scope.needed(node)
    if lost := sorted((read | reached) & (scope.asserted | given) - changed):
        raise TestsError(f"a test reads what an assertion before it gave to the program: {', '.join(lost)}")
    return scope


def _conjuncts(node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope | None]]:
    """What must hold, one by one; with a scope of its own where it is in a loop, `all(f(x) for x in (1, 2))`."""
    node = with_operators(inlined(node, scope), scope)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for value in node.values:
            yield from _conjuncts(value, scope)
        return
    match node:
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() | ast.ListComp() as each]):
            if len(each.generators) == 1 and not each.generators[0].ifs and scope.mentions_program(each):
                for inner in iterations(each.generators[0].target, each.generators[0].iter, scope):
                    for part, innermost in _conjuncts(each.elt, inner):
                        yield part, innermost or inner
                return
    yield node, None


def _of_one(node: ast.expr, scope: Scope) -> list[Split]:
    if not scope.mentions_program(node):
        if tools := sorted(free_names(node) & scope.tools()):
            raise TestsError(f"a test uses {', '.join(tools)} in a way that is not known")
        return []
    return [_split(node, scope)]


def _split(node: ast.expr, scope: Scope) -> Split:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Compare(ops=[operator]) as inner) if type(operator) in _OPPOSITE:
            opposite = _OPPOSITE[type(operator)]()
            return _split(ast.Compare(left=inner.left, ops=[opposite], comparators=inner.comparators), scope)
        case ast.UnaryOp(op=ast.Not(), operand=operand) if is_beside(operand, scope, converted=False):
            return _truth(operand, scope, expected=False)
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _compared(left, operator, right, scope) or _shell(node, scope)
        case ast.Call():
            return _close_call(node, scope) or (
                _truth(node, scope, expected=True) if is_beside(node, scope, converted=False) else _shell(node, scope)
            )
    if is_beside(node, scope, converted=False):
        return _truth(node, scope, expected=True)
    return _shell(node, scope)


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr, scope: Scope) -> Split | None:
    """A comparison of the program's part with something that is not; None: some other form."""
    if not scope.mentions_program(left) and type(operator) in _FLIPPED:
        left, operator, right = right, _FLIPPED[type(operator)](), left
    if scope.mentions_program(right):
        return None
    if isinstance(operator, ast.Lt | ast.LtE):
        return _distance(left, right, scope, exclusive=isinstance(operator, ast.Lt))
    if _asks_class(left):
        return None  # a class is no data: it is asked for where the value is
    asks_truth = isinstance(right, ast.Constant) and isinstance(right.value, bool)
    if not is_beside(left, scope, converted=not asks_truth):
        return None
    check: Check
    match operator:
        case ast.Eq() | ast.NotEq():
            check = _equality(right, scope, negated=isinstance(operator, ast.NotEq))
        case ast.Is() | ast.IsNot() if isinstance(right, ast.Constant) and right.value in (None, True, False):
            negated = isinstance(operator, ast.IsNot)
            check = Equal(any_of=(right.value,), style="python", same_type=True, negated=negated)
        case ast.In() | ast.NotIn():
            check = Member(collection=_expected(right, scope), negated=isinstance(operator, ast.NotIn))
        case _:
            return None
    return _test(left, check, scope, rest=right)


def _equality(right: ast.expr, scope: Scope, *, negated: bool) -> Check:
    match right:
        case ast.Call(func=ast.Name(id="approx") | ast.Attribute(attr="approx"), args=[expected, *rest]):
            settings = _settings(right, ("rel", "abs"), rest)
            absolute = float(settings.get("abs", 1e-12))
            relative = float(settings.get("rel", 0.0 if "abs" in settings else 1e-6))
            return Close(expected=_expected(expected, scope), relative=relative, absolute=absolute, negated=negated)
    return Equal(any_of=(_expected(right, scope),), style="python", negated=negated)


def _distance(left: ast.expr, right: ast.expr, scope: Scope, *, exclusive: bool) -> Split | None:
    """`abs(f(x) - 1.5) < 1e-6`."""
    match left:
        case ast.Call(
            func=ast.Name(id="abs" | "fabs") | ast.Attribute(attr="fabs" | "abs"),
            args=[ast.BinOp(left=one, op=ast.Sub(), right=other)],
        ):
            ours, theirs = (one, other) if scope.mentions_program(one) else (other, one)
            limit = _number(right)
            if limit is None or scope.mentions_program(theirs) or not is_beside(ours, scope, converted=True):
                return None
            expected = _expected(theirs, scope)
            return _test(
                ours, Close(expected=expected, relative=0.0, absolute=limit, exclusive=exclusive), scope, rest=theirs
            )
    return None


def _close_call(node: ast.Call, scope: Scope) -> Split | None:
    """`math.isclose(f(x), 1.5)`, `numpy.allclose(f(x), [1.5])`; None: some other call, or a form of it that is rare."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in ("isclose", "allclose", "array_equal") or len(node.args) < 2:
        return None
    root = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    if not isinstance(root, ast.Name) or root.id not in scope.modules:
        return None
    one, other, *rest = node.args
    is_math = name == "isclose" and not (isinstance(node.func, ast.Attribute) and root.id in ("np", "numpy"))
    ours, theirs = (one, other) if scope.mentions_program(one) else (other, one)
    if scope.mentions_program(theirs) or not is_beside(ours, scope, converted=True):
        return None
    expected = _expected(theirs, scope, as_lists=not is_math)
    settings = _settings(node, ("rel_tol", "abs_tol") if is_math else ("rtol", "atol"), rest)
    if is_math:
        relative, absolute = float(settings.get("rel_tol", 1e-9)), float(settings.get("abs_tol", 0.0))
        base: Literal["expected", "larger"] = "larger"
    else:
        exact = name == "array_equal"
        relative, absolute = (
            float(settings.get("rtol", 1e-5 * (not exact))),
            float(settings.get("atol", 1e-8 * (not exact))),
        )
        base = "expected"
    check = Close(expected=expected, relative=relative, absolute=absolute, relative_to=base)
    return _test(ours, check, scope, rest=theirs, as_lists=not is_math)


def _settings(node: ast.Call, names: Sequence[str], positional: Sequence[ast.expr]) -> dict[str, float]:
    """Tolerances of a call, by keyword or position; raises `TestsError` for what is none."""
    given = [*zip(names, positional, strict=False), *((each.arg or "**", each.value) for each in node.keywords)]
    found: dict[str, float] = {}
    for name, value in given:
        number = _number(value)
        if name not in names or number is None or len(positional) > len(names):
            raise TestsError(f"a test has a tolerance that cannot be read: {ast.unparse(node):.200}")
        found[name] = number
    return found


def _truth(node: ast.expr, scope: Scope, *, expected: bool) -> Split:
    if isinstance(node, ast.Call) and len({scope.mentions_program(argument) for argument in node.args}) > 1:
        raise TestsError(f"a test has the program compare its result with something: assert {ast.unparse(node):.200}")
    # `not` cannot be replaced by the program, `bool` can.
    return _test(node, Truth(expected=expected), scope, source=f"not not ({ast.unparse(node)})")


def _test(
    node: ast.expr,
    check: Check,
    scope: Scope,
    *,
    rest: ast.expr | None = None,
    source: str | None = None,
    as_lists: bool = False,
) -> Split:
    if rest is not None:
        keep_apart(node, rest, scope, before=True)
    source = _AS_LISTS.format(ast.unparse(node)) if as_lists else source
    setup, imports = scope.setup(node, beside=True)
    run = ExpressionRun(expression=source or ast.unparse(node), setup=setup)
    test = Test(runs=(run,), check=check, repeats=scope.repeats(node))
    return Split(test=test, imports=imports, parts=(scope.part(run.expression),), scope=scope)


def _shell(node: ast.expr, scope: Scope) -> Split:
    """The assertion with the program's parts replaced by names, to be evaluated apart with their values."""
    finder = _Holes(scope)
    rest = finder.visit(copy.deepcopy(node))
    names = {f"_value_{index}_" for index in range(len(finder.parts))}
    outside = Scope(lines=scope.lines, own=scope.own | names, results=scope.results - names, modules=scope.modules)
    if other := _class_without_data(rest, scope):
        raise TestsError(f"a test asks whether a value is {other}, whose class it loses outside of the program")
    if not finder.parts or outside.mentions_program(rest):
        raise TestsError(f"a test mixes the program with what is expected of it: assert {ast.unparse(node):.300}")
    runs: list[ExpressionRun] = []
    imports: list[str] = []
    lines: list[Line] = []
    repeats = 0
    for part in finder.parts:
        keep_apart(part, rest, scope)
        before = scope.with_parts(lines)
        setup, imported = before.setup(part, beside=True)
        runs.append(ExpressionRun(expression=ast.unparse(part), setup=setup))
        repeats = max(repeats, before.repeats(part))
        lines.append(scope.part(runs[-1].expression))
        imports += imported
    setup, _ = outside.setup(rest, beside=False)
    test = Test(runs=tuple(runs), check=Shell(expression=ast.unparse(rest), setup=setup), repeats=repeats)
    return Split(test=test, imports=tuple(imports), parts=tuple(lines), scope=scope)


def _class_without_data(node: ast.expr, scope: Scope) -> str:
    """A class that a value is asked for and that no value has when it comes as data, or nothing."""
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]):
                kinds, known = _several(kind), _DATA_CLASSES
            case ast.Compare(left=left, comparators=others) if any(map(_asks_class, (left, *others))):
                kinds, known = [kind for side in (left, *others) for kind in _several(side)], _EXACT_CLASSES
            case _:
                continue
        for name in kinds:
            if ast.unparse(name) not in known and not _asks_class(name):
                return ast.unparse(name)
            if scope.needed(name)[1] & scope.modules - set(known):
                return ast.unparse(name)
    return ""


def _asks_class(node: ast.expr) -> bool:
    """`type(f(2))`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "type" and len(node.args) == 1


def _several(kind: ast.expr) -> list[ast.expr]:
    return kind.elts if isinstance(kind, ast.Tuple | ast.List | ast.Set) else [kind]


class _Holes(ast.NodeTransformer):
    """Replaces the largest parts that run beside the program."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.parts: list[ast.expr] = []

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Await):
            raise TestsError(f"a test awaits something: {ast.unparse(node):.200}")
        if isinstance(node, ast.expr) and is_beside(node, self.scope, converted=False):
            if is_object(node, self.scope):
                raise TestsError(f"a test needs an object of the program's own outside of it: {ast.unparse(node):.200}")
            self.parts.append(node)
            return ast.Name(f"_value_{len(self.parts) - 1}_", ast.Load())
        return super().visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if asks_an_object(node, self.scope):
            raise TestsError(
                f"a test asks an object of the program's own whether it is right: {ast.unparse(node):.200}"
            )
        node.value = self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):  # the value goes out, not a method of it
            self.visit_Attribute(node.func)
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node  # what is called later, or for each item, is no value

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda  # type: ignore[assignment]


def _expected(node: ast.expr, scope: Scope, *, as_lists: bool = False) -> Any:
    """An expected value: read off where it is written out, else evaluated later and apart."""
    if isinstance(node, ast.Name) and node.id in scope.literals:
        node = scope.literals[node.id]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        source = _AS_LISTS.format(ast.unparse(node)) if as_lists else ast.unparse(node)
        return Later(ExpressionRun(expression=source, setup=scope.setup(node, beside=False)[0]))


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.BinOp(left=ast.Constant(value=int() | float() as base), op=ast.Pow(), right=exponent):
            power = _number(exponent)
            return None if power is None or abs(power) > 300 or not base else float(base**power)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _number(operand)
            return None if number is None else -number
    return None
