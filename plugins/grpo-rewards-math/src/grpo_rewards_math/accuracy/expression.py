"""Expressions that are more than rational arithmetic: read into exact sympy trees, by math-verify where they are more
than algebra.

Before its parser sees a text, the text's commands and sizes are checked: math-verify computes while it reads, and a
tower of powers would never end. Decimals are handed over as fractions, since it would make floats of them, and
degrees as multiples of pi. Its own timeouts, which work by SIGALRM, are off; this runs in a worker with a budget.

Place in the flow: canonical text → **sympy tree** → comparison.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from latex2sympy2_extended import NormalizationConfig
from math_verify import LatexExtractionConfig, parse

from grpo_rewards_math.accuracy.algebra import Trees
from grpo_rewards_math.accuracy.problems import NotRationalError, TooLargeError, UnreadableError
from grpo_rewards_math.accuracy.rational import evaluate
from grpo_rewards_math.accuracy.spelling import balanced_end

__all__ = ["check_expression", "number_of", "tree_of"]

_MAX_CHARACTERS = 400
_MAX_DEPTH = 25
_MAX_EXPONENT = 5_000
_MAX_GROWTH = 5_000
_MAX_FACTORIAL = 2_000
_CACHED_TREES = 4_096
_COMMAND_NAMES = """
    frac sqrt binom cdot pi infty log ln lg exp sin cos tan cot sec csc arcsin arccos arctan sinh cosh
    tanh text sum prod int lim to lfloor rfloor lceil rceil lvert rvert max min gcd lcm deg mod bmod
    circ prime alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu
    xi rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega
    """
_COMMANDS = frozenset(_COMMAND_NAMES.split())
_READING = [
    LatexExtractionConfig(
        boxed_match_priority=0,
        normalization_config=NormalizationConfig(
            basic_latex=True, units=False, malformed_operators=False, nits=False, boxed="last", equations=False
        ),
    )
]

logging.getLogger("math_verify.parser").addFilter(lambda record: "Timeout is disabled" not in record.getMessage())
logging.getLogger("math_verify.grader").addFilter(lambda record: "Timeout is disabled" not in record.getMessage())


def check_expression(text: str) -> None:
    """Raise `UnreadableError` for what is no expression, `TooLargeError` for one that would not be computed in time."""
    if len(text) > _MAX_CHARACTERS:
        raise TooLargeError(f"an expression of more than {_MAX_CHARACTERS} characters")
    unknown = set(re.findall(r"\\([a-zA-Z]+)", text)) - _COMMANDS
    if unknown:
        raise UnreadableError(f"\\{min(unknown)} is no command of an expression")
    if re.search(r"\d\s+[\d.]|[^\x00-\x7f]|[\"'`@#&?;:~=<>,$%]|\.\.|\\[^a-zA-Z|]", _without_arguments(text)):
        raise UnreadableError("signs that are part of no expression")
    letters = re.sub(r"\\[a-zA-Z]+|\\text\{[^{}]*\}", " ", text)
    if re.search(
        r"[a-zA-Z]{4,}|(?<![a-zA-Z])(?:of|to|in|by|is|at|as|an|if|on|per|the|out|for|was|has|had|we|get|got|you|not|but|are)(?![a-zA-Z])",
        letters,
    ):
        raise UnreadableError("a word that is no product of variables")
    if re.search(r"\{\s*\}|\d\s*_|[-+*/^(]\s*$|\\(?:frac|sqrt|cdot|lfloor|lceil)\s*$", text) or text.count("|") % 2:
        raise UnreadableError("an expression that lacks something")
    if _depth(text) > _MAX_DEPTH:
        raise TooLargeError(f"nested deeper than {_MAX_DEPTH}")
    _check_sizes(text)


def tree_of(text: str) -> Any:
    """The exact sympy tree of a checked text; raises `UnreadableError` when math-verify finds none."""
    tree, reason = _parsed(text)
    if tree is None:
        raise UnreadableError(reason)
    return tree


def number_of(text: str) -> Fraction | None:
    """The value of a checked text as a number near it; None when it is no real constant."""
    tree = tree_of(text)
    value = None if tree.free_symbols else sympy.N(tree, 15)
    return Fraction(str(value)) if value is not None and (value.is_Float or value.is_Rational) else None


@lru_cache(maxsize=_CACHED_TREES)
def _parsed(text: str) -> tuple[Any, str]:
    """The tree, or None and why there is none."""
    try:
        tree = _read(text)
    except UnreadableError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - sympy and math-verify raise whatever they like over odd input
        return None, f"{type(error).__name__}: {error}"[:200]
    if tree is None or tree.has(sympy.nan, sympy.zoo):
        return None, "it has no value"
    return tree, ""


def _read(text: str) -> Any:
    with suppress(NotRationalError):
        return Trees(text).value()
    # In parentheses, or the parser would be content with the beginning of a text; and only the first match, or the
    # extraction would go on to look for any fraction in it.
    found = parse(
        f"\\boxed{{({_for_parser(text)})}}",
        _READING,
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,
    )
    return _plain_tree(found[0]) if found else None


def _for_parser(text: str) -> str:
    """Decimals as fractions, degrees as multiples of pi, and logarithms with their base."""
    text = re.sub(r"(?<![\w\\])(\d+\.\d*|\.\d+)", _as_fraction, text)
    text = re.sub(r"(\d+|[a-zA-Z)}])\s*\^\\circ", r"\1 \\cdot \\frac{\\pi}{180}", text)
    text = re.sub(r"\\(sin|cos|tan|cot|sec|csc)\s*(\d+ \\cdot \\frac\{\\pi\}\{180\})", r"\\\1(\2)", text)
    text = re.sub(r"\\lg(?![a-zA-Z])", r"\\log_{10}", text)
    return re.sub(r"\\bmod(?![a-zA-Z])", r"\\mod", text)


def _as_fraction(match: re.Match[str]) -> str:
    value = Fraction(match[1] if match[1][0] != "." else "0" + match[1])
    return f"({value.numerator})" if value.denominator == 1 else f"(\\frac{{{value.numerator}}}{{{value.denominator}}})"


def _plain_tree(tree: Any) -> Any:
    """Symbols without assumptions, i as the imaginary unit, odd roots of negative numbers real, no floats left."""
    if not isinstance(tree, sympy.Basic) or isinstance(
        tree, sympy.Set | sympy.Tuple | sympy.core.relational.Relational
    ):
        return None
    if tree.atoms(sympy.Float):
        return None
    names = {symbol: sympy.I if symbol.name == "i" else sympy.Symbol(symbol.name) for symbol in tree.free_symbols}
    return tree.xreplace(names).replace(_is_odd_root, lambda power: -((-power.base) ** power.exp))


def _is_odd_root(part: Any) -> bool:
    if not isinstance(part, sympy.Pow) or not part.exp.is_Rational or part.exp.q % 2 == 0 or part.exp.q == 1:
        return False
    return bool(part.base.is_Rational and part.base < 0 and part.exp.p % 2)


def _without_arguments(text: str) -> str:
    """Without what may hold any sign: bounds of sums and limits, texts, indices, arguments of functions of several."""
    text = re.sub(r"\\text\{[^{}]*\}", "", text)
    text = re.sub(r"\\(?:sum|prod|lim|int)\s*_\s*\{[^{}]*\}", "", text)
    return re.sub(r"\\(?:max|min|gcd|lcm)\s*\([^()]*\)|(?<![a-zA-Z])[a-zA-Z]\s*\([^()]*\)|\^\\circ", "", text)


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
        if depth < 0:
            raise UnreadableError("brackets that do not match")
    if depth:
        raise UnreadableError("brackets that do not match")
    return deepest


def _check_sizes(text: str) -> None:
    """Bound what powers, factorials, binomials and sums can grow to."""
    growth = 1.0
    for base, exponent in _exponents(text):
        size = _size(exponent)
        if size > _MAX_EXPONENT:
            raise TooLargeError(f"an exponent of more than {_MAX_EXPONENT}")
        if base in ")}!" and size > 1:
            growth *= size
    if re.search(r"!\s*!", text):
        raise TooLargeError("the factorial of a factorial")
    for operand in re.findall(r"(\d+|[)}])\s*!", text):
        if not operand.isdigit():
            growth *= 100
        elif len(operand) > 5 or int(operand) > _MAX_FACTORIAL:
            raise TooLargeError(f"the factorial of more than {_MAX_FACTORIAL}")
        else:
            growth *= max(int(operand) / 100, 1)
    for operand in re.findall(r"\\binom\{(\d+)\}", text):
        if len(operand) > 5 or int(operand) > _MAX_FACTORIAL:
            raise TooLargeError(f"a binomial coefficient of more than {_MAX_FACTORIAL}")
    if growth > _MAX_GROWTH or max(map(len, re.findall(r"\d+", text)), default=0) > _MAX_CHARACTERS:
        raise TooLargeError("powers of powers")


def _exponents(text: str) -> Iterator[tuple[str, str]]:
    """The last sign of each base, and its exponent."""
    for match in re.finditer(r"\^\s*", text):
        start = match.end()
        base = text[: match.start()].rstrip()[-1:] or "}"
        if text.startswith(("{", "("), start):
            yield base, text[start + 1 : balanced_end(text, start) - 1]
        else:
            yield base, text[start : start + 1]


def _size(exponent: str) -> float:
    """How large an exponent is; 1 for one with variables, whose parts are looked at by themselves."""
    try:
        return float(abs(evaluate(exponent)))
    except NotRationalError:
        return 1.0
    except OverflowError as error:
        raise TooLargeError("an exponent beyond every float") from error
