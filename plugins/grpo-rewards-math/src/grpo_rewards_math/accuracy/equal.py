"""Whether an answer's value is the reference's: every kind of value against every other it can be written as.

Place in the flow: reference's value + answer's value → **equal?** → score.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from grpo_rewards_math.accuracy.exact import radians, same_expression, same_trees, tree
from grpo_rewards_math.accuracy.families import same_families
from grpo_rewards_math.accuracy.problems import UnreadableError
from grpo_rewards_math.accuracy.regions import as_region, same_region
from grpo_rewards_math.accuracy.relations import is_name, same_relation, stated_value, variables
from grpo_rewards_math.accuracy.units import DEGREE, unit_ratio
from grpo_rewards_math.accuracy.values import (
    Choice,
    Expression,
    Family,
    Grid,
    Group,
    Relation,
    Union,
    Value,
    Without,
    Words,
)

__all__ = ["equal"]

_LOG = logging.getLogger("grpo_rewards_math")


def equal(reference: Value, answer: Value) -> bool:
    """Whether they state the same. An answer that turns out to have no value is not equal to anything."""
    try:
        return _equal(reference, answer)
    except UnreadableError:
        return False
    except Exception:  # noqa: BLE001 - sympy raises whatever it likes over odd input; to fail would be a way out
        _LOG.debug("an answer could not be compared", exc_info=True)
        return False


def _equal(reference: Value, answer: Value) -> bool:
    if isinstance(reference, Choice) or isinstance(answer, Choice):
        return _same_choice(reference, answer)
    if isinstance(reference, Words) or isinstance(answer, Words):
        return _same_words(reference, answer)
    if isinstance(reference, Family) or isinstance(answer, Family):
        if not isinstance(reference, Family) or not isinstance(answer, Family):
            return False
        return same_families(reference.forms, answer.forms)
    reference, answer = _without_name(reference, answer)
    if isinstance(reference, Expression) and isinstance(answer, Expression):
        return _same_quantities(reference, answer)
    if isinstance(reference, Relation) and isinstance(answer, Relation):
        if same_relation(reference, answer):
            return True
        if variables(reference) != variables(answer):
            return False
    if isinstance(reference, Grid) or isinstance(answer, Grid):
        return _same_grids(reference, answer)
    if isinstance(reference, Group) and isinstance(answer, Group):
        return _same_groups(reference, answer)
    if isinstance(reference, Without) and isinstance(answer, Without) and _same_parts(reference, answer):
        return True
    if isinstance(reference, Relation | Union | Without) or isinstance(answer, Relation | Union | Without):
        wanted = as_region(reference)
        given = None if wanted is None else as_region(answer)
        return wanted is not None and given is not None and same_region(wanted, given)
    return _same_single(reference, answer)


def _same_quantities(reference: Expression, answer: Expression) -> bool:
    """By value, in the same unit where both state one. 60 degrees are also pi/3."""
    ratio = unit_ratio(reference.unit, answer.unit)
    if ratio is None:
        return False
    if same_expression(reference, answer, ratio):
        return True
    if {reference.unit, answer.unit} != {None, DEGREE}:
        return False
    return same_trees(*(tree(value) * (radians() if value.unit else 1) for value in (reference, answer)))


def _without_name(reference: Value, answer: Value) -> tuple[Value, Value]:
    """x = 13 states the value 13, where the other side is no relation."""
    if isinstance(answer, Relation) and not isinstance(reference, Relation):
        return reference, stated_value(answer) or answer
    if isinstance(reference, Relation) and not isinstance(answer, Relation):
        return stated_value(reference) or reference, answer
    return reference, answer


def _same_choice(reference: Value, answer: Value) -> bool:
    """The letters decide where both have one; a side with a letter alone is that letter; else what the option says."""
    letters = [_letter(value) for value in (reference, answer)]
    if letters[0] is not None and letters[1] is not None:
        return letters[0] == letters[1]
    contents = [value.content if isinstance(value, Choice) else value for value in (reference, answer)]
    return contents[0] is not None and contents[1] is not None and _equal(contents[0], contents[1])


def _letter(value: Value) -> str | None:
    if isinstance(value, Choice):
        return value.letter
    if isinstance(value, Expression) and value.text in ("E", "I"):  # read as numbers, where nothing says otherwise
        return value.text.lower()
    return value.text if isinstance(value, Words) and len(value.text) == 1 else None


def _same_words(reference: Value, answer: Value) -> bool:
    if isinstance(reference, Words) and isinstance(answer, Words):
        one, other = reference.text, answer.text
        if one == other or one.replace(" ", "") == other.replace(" ", ""):
            return True
        return reference.is_product and answer.is_product and sorted(one) == sorted(other)
    pair = [_as_expression(value) for value in (reference, answer)]
    return pair[0] is not None and pair[1] is not None and _equal(pair[0], pair[1])


def _as_expression(value: Value) -> Value | None:
    """A variable or a short product of them that was read as a word, as the expression it may be as well."""
    if not isinstance(value, Words):
        return value
    if not (len(value.text) == 1 or value.is_product):
        return None
    return Expression(" ".join(value.text), None)


def _same_grids(reference: Value, answer: Value) -> bool:
    """Cell by cell. A vector may also be written as a tuple."""
    if isinstance(reference, Grid) and isinstance(answer, Grid):
        shapes = [[len(row) for row in grid.rows] for grid in (reference, answer)]
        return shapes[0] == shapes[1] and all(
            _pairwise(one, other) for one, other in zip(reference.rows, answer.rows, strict=True)
        )
    rows = _rows(reference), _rows(answer)
    if rows[0] is not None and rows[1] is not None:
        return _same_grids(rows[0], rows[1])
    cells = [_vector(value) for value in (reference, answer)]
    return cells[0] is not None and cells[1] is not None and _pairwise(cells[0], cells[1])


def _rows(value: Value) -> Grid | None:
    """A matrix, or an array of arrays of the same length: [[1, 2], [3, 4]]."""
    if isinstance(value, Grid):
        return value
    if not isinstance(value, Group) or value.kind != "sequence" or value.brackets != "[]":
        return None
    rows = [item.items for item in value.items if isinstance(item, Group) and item.brackets == "[]"]
    return Grid(tuple(rows)) if len(rows) == len(value.items) and len({len(row) for row in rows}) == 1 else None


def _vector(value: Value) -> Sequence[Value] | None:
    if isinstance(value, Group) and value.kind == "sequence":
        return value.items
    if isinstance(value, Grid) and (len(value.rows) == 1 or len(value.rows[0]) == 1):
        return [cell for row in value.rows for cell in row]
    return None


def _same_groups(reference: Group, answer: Group) -> bool:
    """Sequences by their order and brackets, lists of words by their order, the rest as sets. Values without brackets
    may be either."""
    if reference.kind == answer.kind == "sequence":
        same_brackets = reference.brackets == answer.brackets or {reference.brackets, answer.brackets} == {"()", "[]"}
        interval = len(reference.items) == 2 and reference.brackets != answer.brackets
        return same_brackets and not interval and _pairwise(reference.items, answer.items)
    if "sequence" in (reference.kind, answer.kind):
        sequence = reference if reference.kind == "sequence" else answer
        loose = "values" in (reference.kind, answer.kind) and sequence.brackets in ("()", "[]")
        return loose and _pairwise(_in_order(reference), _in_order(answer))
    if reference.kind == "values" and (_has_words(reference) or _has_words(answer)):
        return _pairwise(reference.items, answer.items)
    if _is_assignment(reference) != _is_assignment(answer):
        return reference.kind == answer.kind and _pairwise(_in_order(reference), _in_order(answer))
    return _covers(reference.items, answer.items, _equal) and _covers(answer.items, reference.items, _flipped)


def _same_parts(reference: Without, answer: Without) -> bool:
    """Of what is no set of reals: the integers without 0."""
    one, other = reference.removed, answer.removed
    covered = _covers(one, other, _equal) and _covers(other, one, _flipped)
    return covered and _equal(reference.whole, answer.whole)


def _has_words(group: Group) -> bool:
    """Whether texts are listed, whose order may be the answer; not options by their letters, nor products."""
    return any(isinstance(item, Words) and len(item.text) > 1 and not item.is_product for item in group.items)


def _is_assignment(group: Group) -> bool:
    """Whether it gives values to different names: m = 1, b = 2. Not x = 1, x = 2 nor x_1 = 1, x_2 = 2."""
    return len({name.partition("_")[0] for name in _names(group)}) > 1


def _in_order(group: Group) -> Sequence[Value]:
    """Assignments to x, y and z by their name, y = 8, x = 3 is (3, 8); others, and (y, x) = (8, 3), as written."""
    names = _names(group)
    if not names or group.brackets or not {name.partition("_")[0] for name in names} <= {"x", "y", "z"}:
        return group.items
    return [item for _, item in sorted(zip(names, group.items, strict=True), key=lambda pair: pair[0])]


def _names(group: Group) -> Sequence[str]:
    """The names that it gives values to; none where an item gives none."""
    sides = [item.sides[0] for item in group.items if isinstance(item, Relation) and set(item.signs) == {"="}]
    if len(sides) < len(group.items) or not all(map(is_name, sides)):
        return ()
    return [side.text if isinstance(side, Expression | Words) else "" for side in sides]


def _flipped(answer: Value, reference: Value) -> bool:
    return _equal(reference, answer)


def _covers(items: Sequence[Value], others: Sequence[Value], same: Callable[[Value, Value], bool]) -> bool:
    return all(any(same(item, other) for other in others) for item in items)


def _pairwise(reference: Sequence[Value], answer: Sequence[Value]) -> bool:
    return len(reference) == len(answer) and all(map(_equal, reference, answer))


def _same_single(reference: Value, answer: Value) -> bool:
    """A value against a group: a group in which every item is that value."""
    if isinstance(reference, Group) and reference.kind != "sequence":
        return all(_equal(item, answer) for item in reference.items)
    if isinstance(answer, Group) and answer.kind != "sequence":
        return bool(answer.items) and all(_equal(reference, item) for item in answer.items)
    return False
