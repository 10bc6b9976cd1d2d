"""Whether the results of a test's runs are what its check asks for.

Place in the flow: job → run results → **comparison** → score.
"""

from __future__ import annotations

import builtins
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum, auto
from fractions import Fraction
from typing import Any, Literal

from grpo_rewards_code.compare import Tolerance, is_close, same_text, same_value
from grpo_rewards_code.executor.types import ExpressionRun, RunResult
from grpo_rewards_code.executor.values import Opaque
from grpo_rewards_code.problem.types import Close, Equal, Member, Output, Raises, Shell, Test, Truth

__all__ = ["UNDECIDED", "filled", "has_data", "holds"]


class _Undecided(Enum):
    """The test is to be evaluated apart."""

    UNDECIDED = auto()


UNDECIDED = _Undecided.UNDECIDED


def holds(test: Test, results: Sequence[RunResult], tolerance: Tolerance) -> bool | Literal[_Undecided.UNDECIDED]:
    """Whether a test passes; `UNDECIDED` for a `Shell`, which is to be evaluated with the values of its runs.

    A run that did not end well makes it fail, whatever it printed or returned.
    """
    if len(results) < len(test.runs) or any(result.status != "ok" for result in results):
        return False
    if isinstance(test.check, Output):
        expected = test.check
        return any(
            same_text(results[0].stdout, text, tolerance, unordered=expected.unordered) for text in expected.any_of
        )
    if isinstance(test.check, Shell):
        return UNDECIDED if all(has_data(result.value) for result in results) else False
    return _value_holds(test.check, results[0].value, tolerance)


def filled(shell: Shell, values: Sequence[object]) -> ExpressionRun:
    """The assertion as an expression to evaluate, with the values written out before it."""
    lines = [f"_value_{index}_ = {_literal(value)}" for index, value in enumerate(values)]
    setup = "\n".join([shell.setup, *lines])
    return ExpressionRun(expression=f"not not ({shell.expression})", setup=setup)


def has_data(value: Any) -> bool:
    """Whether all of a value came out as data."""
    match value:
        case list() | tuple() | set() | frozenset() | deque():
            return all(map(has_data, value))
        case dict():
            return all(map(has_data, value.keys())) and all(map(has_data, value.values()))
        case Opaque():
            return False
    return True


def _value_holds(check: Equal | Close | Member | Truth | Raises, value: Any, tolerance: Tolerance) -> bool:
    match check:
        case Equal(any_of=several, style=style, unordered=unordered):
            same = any(
                same_value(value, expected, tolerance, style=style, unordered=unordered)
                and not (check.same_type and type(value) is not type(expected))
                for expected in several
            )
            return same != check.negated and (not check.negated or check.same_type or not isinstance(value, Opaque))
        case Close():
            return is_close(value, check, check.expected) != check.negated
        case Member():
            return _is_member(value, check.collection, tolerance) != check.negated and not isinstance(value, Opaque)
        case Truth():
            return value is check.expected
        case Raises(kinds=kinds):
            return _is_raised(value, kinds)


def _is_member(value: Any, collection: Any, tolerance: Tolerance) -> bool:
    if isinstance(collection, str):
        return isinstance(value, str) and value in collection
    if isinstance(collection, Mapping | AbstractSet | Sequence):
        return any(same_value(value, each, tolerance, style="python") for each in collection)
    return False


def _is_raised(value: Any, kinds: Sequence[str]) -> bool:
    """The run gives (name of the nearest built-in class, message)."""
    if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[0], str):
        return False
    kind = getattr(builtins, value[0], None)
    wanted = tuple(getattr(builtins, name) for name in kinds)
    return isinstance(kind, type) and issubclass(kind, wanted)


def _literal(value: Any) -> str:
    """Python source of a value: `repr`, but for numbers that have none, and without a limit on digits."""
    match value:
        case bool():
            return repr(value)
        case int():
            return hex(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            return f"float('{value}')"
        case Decimal():
            return f"__import__('decimal').Decimal('{value}')"
        case Fraction():
            return f"__import__('fractions').Fraction({hex(value.numerator)}, {hex(value.denominator)})"
        case deque():
            return f"__import__('collections').deque({_literal(list(value))})"
        case OrderedDict():
            return f"__import__('collections').OrderedDict({_literal(dict(value))})"
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case tuple():
            return f"({''.join(f'{_literal(each)}, ' for each in value)})"
        case frozenset():
            return f"frozenset([{', '.join(map(_literal, value))}])"
        case set():
            return f"set([{', '.join(map(_literal, value))}])"
        case dict():
            return f"{{{', '.join(f'{_literal(key)}: {_literal(each)}' for key, each in value.items())}}}"
    return repr(value)
