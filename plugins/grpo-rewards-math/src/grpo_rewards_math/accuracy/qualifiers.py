"""Words behind a number that change it, take it back or doubt it, and so are no unit: `4 negative`, `4 nope`.

What is counted is named by any noun at all, and no list holds them; the words that say something else than what is
counted are few. So a word is a unit unless it is in a list here: number words, signs, operations, denials and doubts.
Some of them also stand before a noun (5 wrong answers, 5 negative integers, 3 two digit numbers), and are refused only
where none follows.
"""

from __future__ import annotations

import re

__all__ = ["is_qualified"]

_DENIALS = """
    not no never none nothing nobody neither either nor cannot nope nah nay nada nil null zilch nein nicht niet nyet
    nunca jamais is isnt are arent was wasnt were werent be been but except unless if though although however otherwise
    rather instead oops sorry
    """
_DOUBTS = """
    or maybe perhaps probably possibly supposedly allegedly hardly scarcely approximately approx about roughly around
    circa nearly almost ish
    """
_OPERATIONS = """
    and answer plus minus squared cubed factorial modulo mod divided multiplied raised doubled tripled quadrupled halved
    negated inverted reciprocal root power digits choose thrice least most than below beneath under
    inverse radical bis wan ppm ppb ppt permille permil lakh lakhs lac lacs crore crores
    """
_ANYWHERE = frozenset(f"{_DENIALS} {_DOUBTS} {_OPERATIONS}".split())
_JUDGEMENTS = """
    wrong incorrect false untrue invalid impossible mistaken refuted rejected denied retracted disproved bogus fake
    imaginary hypothetical unlikely unsure uncertain unknown undefined unclear
    """
_SIGNS = "negative positive nonnegative nonpositive opposite"
_AMOUNTS = """
    more less fewer max maximum minimum many several few some infinity infinite infinitely countless grand score
    twice double triple quadruple half quarter fold twofold threefold tenfold mega giga tera milli micro nano
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fourty fifty sixty seventy eighty ninety hundred hundreds thousand thousands
    million millions billion billions trillion trillions quadrillion quadrillions zillion zillions gazillion googol
    dozen dozens myriad halves thirds fourths fifths sixths sevenths eighths ninths tenths hundredths thousandths
    millionths third fourth fifth sixth seventh eighth ninth tenth hundredth thousandth millionth billionth
    """
_LAST = frozenset(f"{_JUDGEMENTS} {_SIGNS} {_AMOUNTS}".split())
_SHORT = frozenset(("k", "M", "B", "T", "bn", "Bn", "mn", "Mn", "mln", "tn", "mil"))
"""Thousand, million, billion, trillion. K is a kelvin and m a metre."""
_ORDINAL = re.compile(r"(?:eleven|twelf|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)tie)ths?")
_PHRASE = re.compile(
    r"\btimes\s+\S|\bto the\b|n['’]t\b|\bbasis points?\b|\bper (?:mille?|thousand|million)\b"
    r"|\bby (?:a factor|mistake|error)\b",
    re.IGNORECASE,
)
_OTHER_SCRIPTS = re.compile("[负負不没沒无無非错錯零〇否兆十百千万萬亿億]")
"""Signs, denials and number words that stand without a blank before what they count."""
_MIXED_SCRIPTS = re.compile(r"[a-zA-Z][Ͱ-λν-ӿ]|[Ͱ-λν-ӿ][a-zA-Z]")
"""Letters that only look like others. μ is a prefix."""
_WORD = re.compile(r"[^\W\d_]+")


def is_qualified(said: str) -> bool:
    """Whether words behind a number say more of it than what it counts."""
    words = _WORD.findall(said)
    small = [word.lower() for word in words]
    return bool(words) and (
        not _ANYWHERE.isdisjoint(small)
        or small[-1] in _LAST
        or words[-1] in _SHORT
        or _ORDINAL.fullmatch(small[-1]) is not None
        or any(pattern.search(said) is not None for pattern in (_PHRASE, _OTHER_SCRIPTS, _MIXED_SCRIPTS))
    )
