"""What the names of a test mean: the program's, the test's own, or a value computed with the program.

The statements before an assertion are kept as lines, and each side of the assertion gets those that it needs, and no
other: a line with an expected answer never runs beside the program unless the test itself passes that to it.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from grpo_rewards_code.problem.types import TestsError

__all__ = ["Line", "Scope", "calls_before", "free_names", "is_literal", "keep_apart", "passed_whole"]

_BUILTINS = frozenset(vars(builtins))


@dataclass(frozen=True, slots=True)
class Line:
    """A statement before an assertion."""

    source: str
    binds: frozenset[str]
    """Names it gives a value."""
    touches: frozenset[str]
    """Names whose value it may change."""
    uses: frozenset[str]
    """Names it reads."""
    is_import: bool = False
    holds_rows: bool = False
    """Whether a list or mapping is written out in it, in which answers may stand beside inputs."""
    is_ours: bool = False
    """Whether the program takes part in it."""
    is_call: bool = False
    """Whether it is the program's part of an assertion, and calls something."""
    keeps: bool = False
    """Whether it may change what the program keeps for itself, as far as its spelling tells, so that all later parts
    need it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a statement sees. Never changed: `bind` and its kin give another one."""

    lines: tuple[Line, ...] = ()
    own: frozenset[str] = frozenset()
    """Names that the test code gives a value without the program."""
    results: frozenset[str] = frozenset()
    """Names whose value the program made."""
    objects: frozenset[str] = frozenset()
    """Those of them that are objects of a class of the program."""
    functions: frozenset[str] = frozenset()
    """Those of them that are other names for functions of the program, or for all of it."""
    modules: frozenset[str] = frozenset()
    """Own names that were imported."""
    helpers: Mapping[str, bool] = field(default_factory=dict, hash=False)
    """Own functions and classes -> whether they hold assertions."""
    literals: Mapping[str, ast.expr] = field(default_factory=dict, hash=False)
    """Own names whose value is written out -> that."""
    aliases: Mapping[str, ast.expr] = field(default_factory=dict, hash=False)
    """Names of expressions that mix the program with other things -> the expression, to be put in their place."""

    passed: frozenset[str] = frozenset()
    """Own names that a program was given, in `result = f(xs)`: it may have changed what they stand for."""

    asserted: frozenset[str] = frozenset()
    """Own names that a program was given inside an assertion."""

    def is_program(self, name: str) -> bool:
        """Whether a name is the program's, or was made by it."""
        return name in self.results or not (name in self.own or name in _BUILTINS)

    def mentions_program(self, node: ast.AST) -> bool:
        """Whether something of the program is in an expression or statement."""
        return any(self.is_program(name) for name in free_names(node))

    def with_import(self, source: str, names: Iterable[str]) -> Scope:
        """After an import of something that is not the program."""
        bound = frozenset(names)
        line = Line(source, bound, frozenset(), frozenset(), is_import=True)
        return replace(
            self,
            lines=(*self.lines, line),
            own=self.own | bound,
            results=self.results - bound,
            modules=self.modules | bound,
        )

    def with_tool(self, names: Iterable[str]) -> Scope:
        """After an import of a test library, which nothing but the forms of assertions needs."""
        bound = frozenset(names)
        return replace(self, own=self.own | bound, results=self.results - bound, modules=self.modules | bound)

    def with_line(
        self,
        node: ast.stmt,
        binds: Collection[str],
        *,
        by_program: bool,
        touches: Collection[str] = (),
        is_object: bool = False,
        is_module: bool = False,
    ) -> Scope:
        """After a statement; `by_program`: what it binds and touches is the program's work from here on."""
        bound, touched = frozenset(binds), frozenset(touches) - self.modules - self.helpers.keys()
        is_definition = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        rows = any(
            isinstance(each, ast.List | ast.Tuple | ast.Dict | ast.Set) and (not is_definition or _is_table(each))
            for each in ast.walk(node)
        )
        uses = free_names(node) | bound
        keeps = by_program and (self._asks_what_is_kept(node) or not bound | touched)
        source = ast.unparse(node)
        line = Line(source, bound, touched, uses, holds_rows=rows, is_ours=by_program, keeps=keeps)
        named = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and self._is_function(node.value.id)
        known = {name: value for name, value in self.literals.items() if name not in bound | touched}
        return replace(
            self,
            lines=(*self.lines, line),
            own=self.own | bound if not by_program else self.own - bound - touched,
            results=self.results | bound | touched if by_program else self.results - bound,
            objects=self.objects | bound if is_object else self.objects - bound,
            functions=self.functions | bound if by_program and (named or is_module) else self.functions - bound,
            literals=known,
            passed=self.passed - bound,
            asserted=self.asserted - bound,
            aliases={name: value for name, value in self.aliases.items() if name not in bound},
        )

    def part(self, source: str) -> Line:
        """The program's part of an assertion as a line for those that come after it: it may have changed an object of
        the program's, or what the program keeps for itself."""
        tree = ast.parse(source)
        names = free_names(tree)
        calls = any(isinstance(each, ast.Call) for each in ast.walk(tree))
        touched = (names & self.results) - self.functions if calls else frozenset()
        keeps = self._asks_what_is_kept(tree)
        return Line(source, frozenset(), touched, names, is_ours=calls, is_call=calls, keeps=keeps)

    def with_parts(self, parts: Iterable[Line]) -> Scope:
        """After the evaluation of parts of assertions."""
        return replace(self, lines=(*self.lines, *parts))

    def with_asserted(self, node: ast.AST) -> Scope:
        """After assertions in which the program may have been given the test's own names."""
        return replace(
            self, asserted=self.asserted | (free_names(node) & self.own - self.modules - self.helpers.keys())
        )

    def repeats(self, node: ast.AST) -> int:
        """How many parts of earlier assertions an expression needs."""
        return sum(line.is_call for line in self.needed(node, beside=True)[0])

    def _is_function(self, name: str) -> bool:
        return name in self.functions or (self.is_program(name) and name not in self.results)

    def _asks_what_is_kept(self, node: ast.AST) -> bool:
        """Whether a function of the program is called without arguments: what it gives is always the same, or kept."""
        return any(
            (isinstance(each.func, ast.Name) and self._is_function(each.func.id) and not each.func.id[:1].isupper())
            or (
                isinstance(each.func, ast.Attribute)
                and isinstance(each.func.value, ast.Name)
                and each.func.value.id in self.functions
            )
            for each in ast.walk(node)
            if isinstance(each, ast.Call) and not each.args and not each.keywords
        )

    def with_literal(self, name: str, value: ast.expr) -> Scope:
        """After `name = value`, written out."""
        node = ast.Assign(targets=[ast.Name(name, ast.Store())], value=value, lineno=1)
        after = self.with_line(node, {name}, by_program=False)
        return replace(after, literals={**after.literals, name: value})

    def with_alias(self, name: str, value: ast.expr) -> Scope:
        """After `name = value`, where the value mixes the program with other things."""
        after = replace(self, own=self.own - {name}, results=self.results - {name})
        return replace(after, aliases={**self.aliases, name: value})

    def with_changes(self, names: frozenset[str]) -> Scope:
        """Where what the program was given is read after it: `result = f(xs); assert xs == [1, 3]`, and
        `assert f(xs) == 2; assert xs == [3, 1]`."""
        changing = [
            replace(line, touches=line.touches | (line.uses & names))
            if line.binds & self.results or line.is_call
            else line
            for line in self.lines
        ]
        literals = {name: value for name, value in self.literals.items() if name not in names}
        return replace(
            self, lines=tuple(changing), own=self.own - names, results=self.results | names, literals=literals
        )

    def given(self) -> frozenset[str]:
        """Names whose value is written out and that parts of earlier assertions gave to the program as they are: what
        it made of them can be read where it runs, and no answer comes with them."""
        calls = (ast.parse(line.source) for line in self.lines if line.is_call)
        return frozenset(name for tree in calls for name in passed_whole(tree)) & self.literals.keys()

    def with_helper(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Scope:
        """After the definition of a function or class of the test code."""
        after = self.with_line(node, {node.name}, by_program=False)
        asserts = any(
            isinstance(each, ast.Assert)
            or (isinstance(each, ast.Raise) and each.exc is not None and "AssertionError" in ast.unparse(each.exc))
            or (isinstance(each, ast.Attribute) and each.attr.lower().startswith("assert"))
            or (isinstance(each, ast.Name) and self.helpers.get(each.id, False))
            for each in ast.walk(node)
        )
        return replace(after, helpers={**self.helpers, node.name: asserts})

    def setup(self, node: ast.AST, *, beside: bool) -> tuple[str, tuple[str, ...]]:
        """The statements that an expression needs, as source, and the imports among them.

        Raises `TestsError` when it is to be evaluated apart and needs something of the program.
        """
        kept, needed = self.needed(node, beside=beside)
        if not beside and (mixed := sorted(name for name in needed if self.is_program(name))):
            raise TestsError(f"a test expects something that only the program has: {', '.join(mixed)}")
        if tools := sorted(needed & self.tools()):
            raise TestsError(f"a test uses {', '.join(tools)} in a way that is not known")
        imports = tuple(line.source for line in kept if line.is_import)
        return "\n".join(line.source for line in kept), imports

    def tools(self) -> frozenset[str]:
        """Names of a test library, which have no meaning where an expression is evaluated."""
        return self.modules - {name for line in self.lines for name in line.binds}

    def needed(self, node: ast.AST, *, beside: bool = False) -> tuple[list[Line], frozenset[str]]:
        """The lines that an expression needs, in order, and the names that these and it read.

        `beside`: it is evaluated beside the program, so that what the program keeps for itself counts.
        """
        names = set(free_names(node))
        kept: list[Line] = []
        for line in reversed(self.lines):
            if line.binds & names or line.touches & names or (beside and line.keeps):
                kept.append(line)
                names |= line.uses | line.touches
        kept.reverse()
        return kept, frozenset(names)


def keep_apart(part: ast.expr, rest: ast.expr, scope: Scope, *, before: bool = False) -> None:
    """Raise `TestsError` when the program's part of a test takes its input out of something that holds the answer too.

    A list that is passed to the program as it is may be needed on both sides: `f(xs) == sorted(xs)`; with `before`
    also one that was passed by a statement before: `r = f(xs); assert r == sorted(xs)`. Each side makes its own.
    """
    ours, _ = scope.needed(part, beside=True)
    theirs, _ = scope.needed(rest)
    shared = [line for line in theirs if line in ours]
    calls = calls_before([line for line in ours if line not in shared], scope) if before else []
    taken_apart = {name for tree in (rest, *calls) for name in _names_as_they_are(tree, inside_subscripts=True)}
    passed = {name for tree in (part, *calls) for name in passed_whole(tree)} - taken_apart
    # `case.input` and `case.answer`, also by a name for each
    taken = [
        {name for tree in trees for name in _names_as_they_are(tree, inside_subscripts=True)}
        for trees in (
            [part, *(ast.parse(line.source) for line in ours if line not in shared)],
            [rest, *(ast.parse(line.source) for line in theirs if line not in shared)],
        )
    ]
    for line in shared:
        splits = not line.is_import and line.binds & taken[0] & taken[1]
        if splits or (line.holds_rows and not line.binds <= passed):
            names = ", ".join(sorted(line.binds))
            raise TestsError(f"a test takes its input and its answer out of the same thing: {names}")
        if not line.is_import and line.uses & scope.modules & _RANDOM and not _SEEDED.search(line.source):
            raise TestsError(f"a test has a random input, which is another one for each side: {line.source:.200}")


_RANDOM = frozenset(
    {"random", "secrets", "uuid", "urandom", "uuid4"}
    | {"choice", "choices", "gauss", "getrandbits", "randint", "randrange", "sample", "shuffle", "uniform"}
)
_SEEDED = re.compile(r"\bRandom\([^()]")
"""`rng = random.Random(42)`: the same numbers on each side."""


def calls_before(lines: Iterable[Line], scope: Scope) -> list[ast.AST]:
    """Those of the statements that call the program."""
    return [ast.parse(line.source) for line in lines if line.binds & scope.results]


def passed_whole(node: ast.AST) -> set[str]:
    """Names of values that a call of the program is given as they are, not of functions that read something."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return _names_as_they_are(node) - {each.id for each in calls if isinstance(each, ast.Name)}


def _is_table(node: ast.expr) -> bool:
    """Whether a list or mapping holds values that are written out."""
    return is_literal(node) and any(isinstance(each, ast.Constant) for each in ast.walk(node))


def _names_as_they_are(node: ast.AST, *, inside_subscripts: bool = False) -> set[str]:
    """Names read outside subscripts and attributes; or those read inside of them."""
    inside = {
        name.id
        for each in ast.walk(node)
        if isinstance(each, ast.Subscript | ast.Attribute)
        for name in ast.walk(each.value)
        if isinstance(name, ast.Name)
    }
    inside |= {
        name.id
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in ("next", "getattr")
        for name in each.args[:1]
        if isinstance(name, ast.Name)
    }
    return inside if inside_subscripts else set(free_names(node)) - inside


def free_names(node: ast.AST) -> frozenset[str]:
    """The names that an expression or statement reads from outside itself."""
    return frozenset(_reads(node))


def _reads(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            inner = {each.id for g in node.generators for each in ast.walk(g.target) if isinstance(each, ast.Name)}
            yield from (name for child in ast.iter_child_nodes(node) for name in _reads(child) if name not in inner)
        case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            body = node.body if isinstance(node.body, list) else [node.body]
            local = arguments | _stored(body)
            yield from (name for child in body for name in _reads(child) if name not in local)
            yield from (
                name for default in [*node.args.defaults, *node.args.kw_defaults] if default for name in _reads(default)
            )
        case _:
            yield from (name for child in ast.iter_child_nodes(node) for name in _reads(child))


def _stored(body: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ExceptHandler) and node.name:
                names.add(node.name)
    return names


def is_literal(node: ast.AST) -> bool:
    """Whether an expression is written out: constants in lists, tuples, sets and dicts."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant()):
            return True
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return all(map(is_literal, items))
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and is_literal(key) for key in keys) and all(map(is_literal, values))
    return False
