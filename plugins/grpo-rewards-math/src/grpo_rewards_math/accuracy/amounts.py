"""Numbers that are partly words: 5 million, 3 dozen, 7 tenths, negative 4. The words become factors and signs.

Words alone (`five`) stay words; a word that is no amount is for `units`.

Place in the flow: answer text → canonical text, of which this is one step.
"""

from __future__ import annotations

import re

__all__ = ["in_digits"]

_FACTORS = {
    "ten": "10",
    "dozen": "12",
    "hundred": "10^{2}",
    "gross": "144",
    "thousand": "10^{3}",
    "lakh": "10^{5}",
    "lac": "10^{5}",
    "crore": "10^{7}",
    "million": "10^{6}",
    "billion": "10^{9}",
    "trillion": "10^{12}",
    "quadrillion": "10^{15}",
    # In the plural alone: 5 fifth graders are five.
    "halves": "2^{-1}",
    "thirds": "3^{-1}",
    "fourths": "4^{-1}",
    "fifths": "5^{-1}",
    "sixths": "6^{-1}",
    "sevenths": "7^{-1}",
    "eighths": "8^{-1}",
    "ninths": "9^{-1}",
    "tenths": "10^{-1}",
    "hundredths": "10^{-2}",
    "thousandths": "10^{-3}",
    "millionths": "10^{-6}",
}
_NAMES = "|".join(sorted(_FACTORS, key=len, reverse=True))
_FACTOR = re.compile(
    rf"(?:(?<![\d.,])(?P<grouped>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?)|(?<=[\d)}}]))(?:\s*|-)"
    rf"(?:\\text\{{\s*(?P<upright>{_NAMES})s?(?![^\W\d_])\s*(?P<rest>[^{{}}]*)\}}|(?P<plain>{_NAMES})s?(?![^\W\d_]))",
    re.IGNORECASE,
)
_SIGN = re.compile(
    r"(?P<before>(?:^|[=(,])\s*)(?:\\text\{\s*)?(?P<sign>negative|minus|positive|plus)\s*(?:\}\s*)?"
    r"(?=\s*\\?[$\d.(]|\s*\\(?:frac|sqrt|pi))",
    re.IGNORECASE,
)
_IN_ONE_SIGN = {
    "十": "10",
    "百": "10^{2}",
    "千": "10^{3}",
    "万": "10^{4}",
    "萬": "10^{4}",
    "亿": "10^{8}",
    "億": "10^{8}",
}
_SIGNS_OF_FACTORS = re.compile(rf"(?<=[\d)}}])\s*(\\text\{{\s*)?([{''.join(_IN_ONE_SIGN)}]+)")
_MOST_FACTORS = 3
"""Hundred thousand million is the longest chain."""


def in_digits(text: str) -> str:
    """A text whose upright words are set as `\\\\text{…}`, with its number words as factors and signs."""
    text = _SIGN.sub(_as_sign, text).replace("‰", r"\cdot 10^{-3}")
    text = re.sub(r"\\text\{\s*\}", " ", _SIGNS_OF_FACTORS.sub(_as_factors, text))
    for _ in range(_MOST_FACTORS):
        changed = _FACTOR.sub(_as_factor, text)
        if changed == text:
            break
        text = changed
    return text


def _as_factor(match: re.Match[str]) -> str:
    factor = _FACTORS[(match["upright"] or match["plain"]).lower()]
    rest = f" \\text{{{match['rest']}}}" if match["rest"] else ""
    return f"{(match['grouped'] or '').replace(',', '')}\\cdot {factor}{rest}"


def _as_factors(match: re.Match[str]) -> str:
    return "".join(f"\\cdot {_IN_ONE_SIGN[sign]}" for sign in match[2]) + (f" {match[1]}" if match[1] else "")


def _as_sign(match: re.Match[str]) -> str:
    return match["before"] + ("-" if match["sign"].lower() in ("negative", "minus") else "")
