"""From canonical text to a value: brackets, lists, relations and matrices are taken apart here, what remains is an
expression. The whole text is read or nothing: a number somewhere in it is not the answer.

Place in the flow: canonical text → **value** → comparison.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

from grpo_rewards_math.accuracy.brackets import closing_end, split, with_round_ends
from grpo_rewards_math.accuracy.choices import split_choice
from grpo_rewards_math.accuracy.expression import check_expression, number_of
from grpo_rewards_math.accuracy.families import PARAMETER, split_family
from grpo_rewards_math.accuracy.problems import NotRationalError, UnreadableError
from grpo_rewards_math.accuracy.rational import evaluate
from grpo_rewards_math.accuracy.relations import is_name
from grpo_rewards_math.accuracy.sentence import announced
from grpo_rewards_math.accuracy.spelling import canonical
from grpo_rewards_math.accuracy.units import split_unit
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

__all__ = ["read", "read_sentence"]

_MAX_ITEMS = 200
_NEAR = Fraction(1, 20)
_MAX_WORDS_CHARACTERS = 80
_MAX_OPTION_CHARACTERS = 400
"""Of what an option says; a longer one is its letter alone."""
_THOUSANDS = re.compile(r"[-+]?(?:\\text\{dollars\} ?)?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])")
_SEPARATOR = re.compile(
    r"[,;]\s*(?:\\text\{(?:and|or)\}|(?:and|or)\b)?|\\text\{,?\s*(?:and|or),?\s*\}|\b(?:and|or)\b|\\&|&"
)
_SIGN = re.compile(r"\\(?:le|ge|ne|approx|in|equiv|sim)(?![a-zA-Z])|[=<>]")
_ENVIRONMENT = re.compile(
    r"\\begin\s*\{([pbBvV]?(?:small)?matrix|array)\}\s*(?:\{[^{}]*\})?(.*)\\end\s*\{\1\}", re.DOTALL
)
_LETTERS = re.compile(r"[^\W\d_](?:[^\W\d_]|[ '\-./])*", re.UNICODE)
_BASED = re.compile(r"([0-9]+)\s*_\s*\{?\s*([0-9]{1,2})\s*\}?")
_RATIO = re.compile(r"\d+(?:\.\d+)?(?: ?: ?\d+(?:\.\d+)?)+")
_PRODUCT = re.compile(r"(?:[a-df-hj-np-z]\s*){2,3}")
_OPERATION = re.compile(r"[a-zA-Z]{1,2}(?:\s*[-/]\s*[a-zA-Z]{1,2})+")
_POINT = re.compile(r"[ABDEK-Z](?:_\{?\w\}?|'){0,2}\s*(?=\()")
"""The name of a point before its coordinates. C(5, 2), F(1, 2) and the like are values of functions."""
_REALS = "(-\\infty,\\infty)"
_WITHOUT = re.compile(r"\\setminus(?![a-zA-Z])|(?<=\})\s*-\s*(?=\\\{)")
_EMPTY = {"\\emptyset": "empty set", "\\{ \\}": "empty set", "\\{\\}": "empty set"}


def read(text: str) -> Value:
    """What a canonical text states as a whole; raises `UnreadableError`."""
    if not text:
        raise UnreadableError("no text")
    text = with_round_ends(text)
    if text in _EMPTY:
        return Words(_EMPTY[text])
    if _THOUSANDS.fullmatch(split_unit(text)[0]):
        return _expression(_joined_thousands(text))
    with suppress(UnreadableError):  # several options may still be several values
        choice = _choice(text)
        if choice is not None:
            return choice
    forms = split_family(text)
    if forms is not None:
        return _family(forms)
    parts = split(text, _SEPARATOR)
    if len(parts) > 1:
        return _values(parts, text)
    return _read_one(text)


def read_sentence(text: str) -> Value:
    """What the sentences of a text announce; raises `UnreadableError`. A value goes before words."""
    split_choice(canonical(text))  # A. then B: several options are no explanation of the last one
    words = None
    for part in announced(text):
        with suppress(UnreadableError):
            value = read(canonical(part))
            if not isinstance(value, Words) or " " not in value.text:
                return value
            words = words or value
    if words is None:
        raise UnreadableError("no sentence that announces a value")
    return words


def _family(forms: str) -> Value:
    """Of what forms give: x = k\\pi, \\pm k\\pi, several of them, or a set."""
    value = read(forms)
    values = value.items if isinstance(value, Group) and value.kind != "sequence" else (value,)
    found = []
    for each in values:
        if isinstance(each, Relation) and each.signs == ("=",) and is_name(each.sides[0]):
            each = each.sides[1]
        inner = each.items if isinstance(each, Group) and each.kind == "values" else (each,)
        found += [Expression(v.text, None) if isinstance(v, Words) and v.text == PARAMETER else v for v in inner]
    if not all(isinstance(each, Expression) for each in found):
        raise UnreadableError("a family of something else than numbers")
    return Family(tuple(each for each in found if isinstance(each, Expression)))


def _read_one(text: str) -> Value:
    if not text:
        raise UnreadableError("nothing where a value should be")
    grid = _ENVIRONMENT.fullmatch(text)
    if grid is not None and not grid[1].startswith(("v", "V")):
        return _grid(grid[2])
    unions = split(text, re.compile(r"\\cup(?![a-zA-Z])"))
    if len(unions) > 1:
        return Union(tuple(_read_one(part) for part in unions))
    whole, *removed = split(text, _WITHOUT)
    if removed and not split(whole, _SIGN)[1:]:
        braced = (re.sub(r"^\{(.*)\}$", r"\\{\1\\}", part) for part in removed)
        return Without(_read_one(whole), tuple(map(_read_one, braced)))
    if _SIGN.search(text) and len(split(text, _SIGN)) > 1:
        return _relation(text)
    bracketed = _bracketed(_without_point(text))
    if bracketed is not None:
        return bracketed
    if re.search(r"\\[pm][mp](?![a-zA-Z])", text) and re.search(r"\\(?:pm|mp)(?![a-zA-Z])", text):
        return _both_signs(text)
    if _RATIO.fullmatch(text):
        first, *rest = (Fraction(part) for part in text.split(":"))
        if first:
            scaled = (Expression(str(part / first), part / first) for part in rest)
            return Group("sequence", tuple(scaled), "::")
    named = re.fullmatch(r"\\mathbb\s*\{?([RZNQC])\}?", text)
    if named is not None:
        return _read_one(_REALS) if named[1] == "R" else Words(f"all of {named[1].lower()}")
    worded = _words(text)
    return worded if worded is not None else _expression(text)


def _values(parts: Sequence[str], text: str) -> Value:
    if len(parts) > _MAX_ITEMS:
        raise UnreadableError(f"more than {_MAX_ITEMS} values")
    items = [read(_joined_thousands(part)) if _THOUSANDS.fullmatch(part) else _read_one(part) for part in parts]
    first, *others = items
    # x = 3, 5 and x_1 = 3, 5: one variable, several values
    if isinstance(first, Relation) and first.signs == ("=",) and not any(isinstance(o, Relation) for o in others):
        items = [first.sides[1], *others]
    flat = [value for item in items for value in (item.items if _is_list(item) else (item,))]  # type: ignore[union-attr]
    if len({isinstance(value, Words | Choice) for value in flat}) > 1:
        raise UnreadableError("values and words")
    return Group("values", tuple(flat))


def _is_list(value: Value) -> bool:
    return isinstance(value, Group) and value.kind == "values"


def _bracketed(text: str) -> Value | None:
    """A set, a tuple, a list or an interval, when brackets hold all of the text."""
    if text.startswith("\\{") and text.endswith("\\}") and text.find("\\}") == len(text) - 2:
        inner = text[2:-2].strip()
        rule = re.split(r"\\mid(?![a-zA-Z])|\||:", inner, maxsplit=1)
        if len(rule) == 2:
            return _ruled(rule[0].strip(), rule[1].strip())
        return Group("set", tuple(_items(inner)))
    if text[0] not in "([" or text[-1] not in ")]":
        return None
    if closing_end(text) != len(text):
        return None
    inner = text[1:-1].strip()
    parts = split(inner, re.compile(r"[,;]"))
    if len(parts) > 1:
        return Group("sequence", tuple(_items(inner)), text[0] + text[-1])
    value = read(inner)
    return value if text[0] + text[-1] == "()" or isinstance(value, Grid) else Group("sequence", (value,), "[]")


def _without_point(text: str) -> str:
    """The coordinates of a named point, P(1, 2); other texts as they are."""
    name = _POINT.match(text)
    if name is None or closing_end(text[name.end() :]) != len(text) - name.end():
        return text
    inner = text[name.end() + 1 : -1]
    return text[name.end() :] if "," in inner and not re.search(r"(?<![a-zA-Z\\])[a-zA-Z]", inner) else text


def _ruled(element: str, rule: str) -> Value:
    """What of a name the rule of a set says: x | x > 2. That of anything else (5 | 6, 2k | k > 2) says nothing."""
    if (forms := split_family(f"{element}, {rule}")) is not None:
        return _family(forms)
    if not _are_names(re.split(r"\\in(?![a-zA-Z])", element, maxsplit=1)[0].strip()):
        raise UnreadableError("a set whose elements are no name")
    return read(rule)


def _items(inner: str) -> list[Value]:
    """The elements inside brackets: there a comma separates, unless others with blanks do."""
    parts = split(inner, re.compile(r";|,\s+" if re.search(r",\s", inner) and ",\\" not in inner else r"[,;]"))
    if any("," in part and not _THOUSANDS.fullmatch(part) and not _bracket_inside(part) for part in parts):
        parts = split(inner, re.compile(r"[,;]"))
    if len(parts) > _MAX_ITEMS:
        raise UnreadableError(f"more than {_MAX_ITEMS} values")
    items = [_expression(_joined_thousands(p)) if _THOUSANDS.fullmatch(p) else _read_one(p) for p in parts]
    return [value for item in items for value in (item.items if _is_list(item) else (item,))]  # type: ignore[union-attr]


def _bracket_inside(part: str) -> bool:
    return part[:1] in "([" or part.startswith("\\{")


def _relation(text: str) -> Value:
    parts, signs = split(text, _SIGN), _signs(text)
    if any(not part for part in parts):
        raise UnreadableError("a relation with an empty side")
    if signs[0] == "\\in" and len(parts) == 2 and _are_names(parts[0]):
        return read(parts[1])
    if set(signs) & {"\\in", "\\equiv", "\\sim"}:
        raise UnreadableError("a relation that has no one meaning")
    if "\\approx" in signs:
        # The value before it is exact; after it comes an approximation, which is the value where a name stands before.
        cut = signs.index("\\approx")
        exact = [part for part in parts[: cut + 1] if not _is_name(part)]
        values = [read(part) for part in (*exact[-1:], parts[cut + 1])]
        if len(values) > 1 and not _is_near(values[0], values[1]):
            raise UnreadableError("an approximation that is none")
        return values[0]
    sides = [read(part) for part in parts]
    if signs == ["="] and _is_name(parts[0]) and isinstance(sides[1], Group | Grid):
        return sides[1]  # x = ±3, P = (1, 2)
    if signs == ["="] and _are_names(parts[0]) and isinstance(sides[1], Group) and sides[1].kind == "sequence":
        return _assigned(parts[0], sides[1])
    return Relation(tuple(sides), tuple(signs))


def _is_near(exact: Value, rounded: Value) -> bool:
    """Whether the second may be the first, rounded. What has no numbers may be anything."""
    if not isinstance(exact, Expression) or not isinstance(rounded, Expression) or rounded.exact is None:
        return True
    value = exact.exact if exact.exact is not None else number_of(exact.text)
    return value is None or abs(value - rounded.exact) <= max(abs(value) * _NEAR, _half_a_place(rounded.text))


def _half_a_place(digits: str) -> Fraction:
    return Fraction(1, 2 * 10 ** min(len(digits.partition(".")[2]), _MAX_WORDS_CHARACTERS))


def _assigned(names: str, values: Group) -> Value:
    """(x, y) = (1, 2) as what it says of each name, in this order."""
    sides = [read(name.strip()) for name in names[1:-1].split(",")]
    if len(sides) != len(values.items):
        raise UnreadableError("not as many names as values")
    equations = tuple(Relation((name, value), ("=",)) for name, value in zip(sides, values.items, strict=True))
    return Group("values", equations, values.brackets)


def _is_name(text: str) -> bool:
    return re.fullmatch(r"\\?[a-zA-Z]+(?:_\{?\w+\}?)?(?:\([a-z]\))?", text) is not None and text != "\\pi"


def _are_names(text: str) -> bool:
    """A name, or several in brackets: x, f(x), (a, b)."""
    names = text[1:-1].split(",") if re.fullmatch(r"\([^()]*\)", text) else [text]
    return all(_is_name(name.strip()) for name in names)


def _signs(text: str) -> list[str]:
    found: list[str] = []
    split(text, _SIGN, found)
    return found


def _both_signs(text: str) -> Value:
    upper = re.sub(r"\\pm(?![a-zA-Z])", "+", re.sub(r"\\mp(?![a-zA-Z])", "-", text))
    lower = re.sub(r"\\pm(?![a-zA-Z])", "-", re.sub(r"\\mp(?![a-zA-Z])", "+", text))
    return Group("values", (_read_one(upper), _read_one(lower)))


def _grid(inner: str) -> Value:
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?|\\cr\b", inner) if row.strip()]
    cells = tuple(tuple(_read_one(cell.strip()) for cell in row.split("&")) for row in rows)
    if len({len(row) for row in cells}) != 1 or sum(map(len, cells)) > _MAX_ITEMS:
        raise UnreadableError("no rectangle of values")
    return Grid(cells)


def _choice(text: str) -> Choice | None:
    choice = split_choice(text)
    if choice is None:
        return None
    content = None
    if 0 < len(choice[1]) <= _MAX_OPTION_CHARACTERS:
        with suppress(UnreadableError):
            content = read(choice[1])
    return Choice(choice[0].lower(), content)


def _words(text: str) -> Value | None:
    """A choice or words, when the text has nothing of an expression; None otherwise."""
    choice = _choice(text)
    if choice is not None:
        return choice
    if _OPERATION.fullmatch(text):
        return None  # a/b, a - b: letters, but no word
    plain = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    plain = re.sub(r"\s+", " ", plain.replace("\\ ", " ")).strip(" .\"'")
    if len(plain) <= _MAX_WORDS_CHARACTERS and _LETTERS.fullmatch(plain) and plain.lower() not in ("e", "i", "pi"):
        letters = " ".join(re.findall(r"[^\W\d_]+", plain.lower()))
        return Words(letters, is_product=_PRODUCT.fullmatch(text) is not None)
    return None


def _expression(text: str) -> Expression:
    try:
        return Expression(text, evaluate(text))
    except NotRationalError:
        value, unit = split_unit(text)
    if unit is not None:
        value = _joined_thousands(value) if _THOUSANDS.fullmatch(value) else value
        try:
            return Expression(value, evaluate(value), unit)
        except NotRationalError:
            pass
    based = _BASED.fullmatch(value)
    if based is not None:  # the digits as they are: the question fixes the base, as it fixes a unit
        return Expression(based[1], Fraction(based[1]), f"base {based[2]}")
    check_expression(value)
    return Expression(value, None, unit)


def _joined_thousands(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text)
