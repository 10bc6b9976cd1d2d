"""Units behind a value: split off, named once, and converted where both sides state one.

A question fixes its unit, so a unit on one side alone changes nothing; two different ones do. Words count as a unit
when they are set as text or known here, and change nothing (`qualifiers`); letters that could be variables are left
alone.
"""

from __future__ import annotations

import re
from fractions import Fraction

from grpo_rewards_math.accuracy.qualifiers import is_qualified

__all__ = ["DEGREE", "split_unit", "unit_ratio"]

DEGREE = "^\\circ"

_KNOWN: dict[str, tuple[str, Fraction]] = {}
"""Any spelling -> base unit, and how many of them it is."""


def _family(base: str, members: dict[str, str | int | Fraction]) -> None:
    for spellings, amount in members.items():
        for spelling in spellings.split():
            _KNOWN[spelling] = (base, Fraction(amount))


_family(
    "m",
    {
        "m meter meters metre metres": 1,
        "mm millimeter millimeters millimetre millimetres": "1/1000",
        "cm centimeter centimeters centimetre centimetres": "1/100",
        "dm decimeter decimeters decimetre decimetres": "1/10",
        "km kilometer kilometers kilometre kilometres": 1000,
        "in inch inches": "254/10000",
        "ft foot feet": "3048/10000",
        "yd yard yards": "9144/10000",
        "mi mile miles": "1609344/1000",
    },
)
_family(
    "s",
    {
        "s sec secs second seconds": 1,
        "ms millisecond milliseconds": "1/1000",
        "min mins minute minutes": 60,
        "h hr hrs hour hours": 3600,
        "day days": 86400,
        "week weeks": 604800,
    },
)
_family("month", {"month months": 1, "yr yrs year years": 12})
_family(
    "g",
    {
        "g gram grams": 1,
        "mg milligram milligrams": "1/1000",
        "kg kilogram kilograms": 1000,
        "oz ounce ounces": "28349523125/1000000000",
        "lb lbs pound pounds": "45359237/100000",
        "ton tons tonne tonnes": 1000000,
    },
)
_family("l", {"L l liter liters litre litres": 1, "mL ml milliliter milliliters millilitre millilitres": "1/1000"})
_family("dollar", {"dollar dollars usd USD": 1, "cent cents ¢": "1/100"})
_family("degree", {"^\\circ deg": 1})
_SCALES = {"c": "C", "celsius": "C", "f": "F", "fahrenheit": "F"}
_OTHERS = """
    mph kph kmh rpm Hz N J W V A K Pa mol euro euros yuan rupee rupees yen won unit units square cubic
    sq cu radian radians rad degree person people apple apples coin coins time times gallon gallons
    """
for _name in _OTHERS.split():
    _KNOWN.setdefault(_name, (_name.rstrip("s") if len(_name) > 3 else _name, Fraction(1)))

_TEXT = r"\\text\{([^{}]*)\}"
_POWER = r"\s*(?:\^\s*\{?\s*-?\d\s*\}?)?"
_TEXT_TAIL = re.compile(rf"(?P<unit>(?:\s*[/]?\s*(?:\\cdot\s*)?{_TEXT}{_POWER})+)$")
_PLAIN_UNIT = re.compile(r"[(\s]*[^\W\d_](?:[^\W\d_]|[\s/.()·'\-]|\\cdot|\^\s*\{?\s*-?\d\s*\}?|(?<=m)[23])*")
_DEGREE_TAIL = re.compile(r"(?P<unit>\s*\^\\circ\s*(?:\\text\{\s*)?(?:[CF]|[Cc]elsius|[Ff]ahrenheit)?\s*\}?)$")
_HEAD = re.compile(r"^(?P<unit>\\text\{(?:dollars|euro|pound|yen|rupee|won|US|USD|Rs\.?)\})\s*")
_WORD_TAIL = re.compile(
    r"(?<=[\d)}\s])(?P<unit>\s*(?:[a-zA-Zµ]+|[^\W\d_a-zA-Z]{1,4})(?:\s*/\s*[a-zA-Z]+|\^\{?-?\d\}?|\s+[a-zA-Z]+)*)$"
)


def split_unit(text: str) -> tuple[str, str | None]:
    """A canonical text without its unit, and the unit in one spelling; (text, None) when it has none."""
    head = _HEAD.match(text)
    if head is not None and text[head.end() :].strip():
        return text[head.end() :].strip(), _spelling(head["unit"])
    for pattern in (_DEGREE_TAIL, _TEXT_TAIL, _WORD_TAIL):
        match = pattern.search(text)
        if match is None or not text[: match.start()].strip():
            continue
        value = text[: match.start()].strip()
        said = re.sub(_TEXT, r"\1 ", match["unit"])
        if pattern is not _DEGREE_TAIL and is_qualified(said):
            continue
        if pattern is _TEXT_TAIL and not _PLAIN_UNIT.fullmatch(said):
            continue
        if pattern is _WORD_TAIL and not _is_unit_word(match["unit"], value):
            continue
        if pattern is _DEGREE_TAIL and (DEGREE in value or not re.fullmatch(r"[-+\d.,/ ]+|.*[)}]", value)):
            continue
        return value, _spelling(match["unit"])
    return text, None


def unit_ratio(one: str | None, other: str | None) -> Fraction | None:
    """How many of `other` make one of `one`; 1 where a side states none; None where they are not comparable."""
    if one is None or other is None or one == other or _is_degree_of_any_scale(one, other):
        return Fraction(1)
    first, second = _KNOWN.get(one), _KNOWN.get(other)
    if first is None or second is None or first[0] != second[0]:
        return None
    return first[1] / second[1]


def _is_degree_of_any_scale(one: str, other: str) -> bool:
    return DEGREE in (one, other) and one.startswith(DEGREE) and other.startswith(DEGREE)


def _is_unit_word(unit: str, value: str) -> bool:
    """Whether bare letters after a number are a unit: known words, words of several letters set apart, counters in
    scripts without letters that could be variables. A single letter only when set apart."""
    apart = unit[0] == " "
    words = re.findall(r"[^\W\d_]+", unit)
    if not re.search(r"[\d)}]$", value) or re.search(r"[a-zA-Z]", re.sub(r"\\(?:frac|cdot|sqrt|pi)\b", "", value)):
        return False
    if any(not word.isascii() for word in words):
        return all(not word.isascii() for word in words)
    if words[0] in ("of", "e", "i", "mod"):
        return False
    if len(words[0]) == 1:
        return apart and words[0] in _KNOWN
    return words[0] in _KNOWN or (apart and len(words[0]) >= 3)


def _spelling(unit: str) -> str:
    text = re.sub(_TEXT, r"\1", unit).replace("\\cdot", "").strip()
    scale = re.fullmatch(r"(?:\^\\circ|degrees?)\s*(c|f|celsius|fahrenheit)?\}?", text, re.IGNORECASE)
    if scale is not None:
        return f"{DEGREE} {_SCALES[scale[1].lower()]}" if scale[1] else DEGREE
    text = re.sub(r"\s+", " ", re.sub(r"[{}.]", "", text)).replace(" ^", "^").replace(" / ", "/").strip()
    text = re.sub(r"^(?:square|sq) (\w+)$", r"\1^2", re.sub(r"^(?:cubic|cu) (\w+)$", r"\1^3", text))
    text = re.sub(r" per ", "/", text)
    return re.sub(r"[A-Za-z]+", lambda match: _shortest(match[0]), text)


def _shortest(word: str) -> str:
    """One spelling for all of the same amount: centimeters and cm; plurals of unknown words without their s."""
    known = _KNOWN.get(word) or _KNOWN.get(word.lower())
    if known is None:
        return word.lower().removesuffix("s") if len(word) > 3 else word.lower()
    return next(spelling for spelling, meaning in _KNOWN.items() if meaning == known)
