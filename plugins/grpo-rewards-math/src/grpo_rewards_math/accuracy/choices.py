r"""Options of a question: (B), B., \text{(B) 12 cm}. One is a choice; what leaves it open between several is none.

Behind the letter may stand what the option says, which can be anything (`(D) Neither A nor B`, `(B) not enough
information`). It may not name another option as one more answer, and not doubt or deny the letter before it.

Place in the flow: canonical text → **letter and what the option says** → value.
"""

from __future__ import annotations

import re

from grpo_rewards_math.accuracy.problems import UnreadableError

__all__ = ["split_choice"]

_CHOICE = re.compile(r"(?:\\text\{\s*)?[(\[]?([A-J])(?:[)\].:]\s*\}?|\s*\})\s*(.*)", re.DOTALL)
_NO_CONTENT = re.compile(r"[-+^_!/=<>|,;&]|\\(?:cdot|cup|in|le|ge|ne|to)(?![a-zA-Z])")
"""What goes on with a formula, or a list, that begins with a letter."""
_LAYOUT = re.compile(r"\\text\{([^{}]*)\}?|[{}]|\\[,;:! ]|\\q?quad(?![a-zA-Z])")
_LABEL = re.compile(
    r"(?<![\\}^])(?<!(?<![a-zA-Z])[a-zA-Z])(?<!\\sin|\\cos|\\tan|\\log)[(\[]\s*([A-J])\s*[)\]]|(?<!\S)([A-J])[).:](?!\w)"
)
"""Of an option, but f(A) and P(B)."""
_LETTER = re.compile(r"(?<![\w\\{(^])[A-HJ](?![\w'(^_}])")
"""I is a number or a person as a rule."""
_SEVERAL = re.compile(
    r"(?i)(?:both|neither|either|only|all of|none of|not both|not all)\b.*"
    r"|.*\b(?:only|alone|are (?:both )?(?:true|false|correct|equal))[.!]*"
)
"""Sayings of an option about others: both A and B, A and B only."""
_JOINED = re.compile(
    r"(?i)(?:[,;]\s*|\s[/|]\s*|(?-i:(?<![A-Z]\s))\band\s+"
    r"|\b(?:or|nor|not|but|also|else|then|instead of|rather than|maybe|perhaps|possibly|probably"
    r"|(?:can|could|may|might) be)\s+(?:\w+\s+){0,2})$"
)
_LINK_WORDS = """
    and or nor not but also maybe perhaps possibly probably either both no yes then so is it its be could might may
    option options choice choices answer answers the a an to of as well else too if i think guess wait now actually
    correct right wrong incorrect false true better best rather instead than otherwise though although sure
    """
_LINKS = frozenset(_LINK_WORDS.split())
_OF_ANSWER_WORDS = "option options choice choices answer answers maybe perhaps possibly probably instead rather wait"
_OF_ANSWERS = frozenset(_OF_ANSWER_WORDS.split())
_DOUBT = re.compile(
    r"(?i)\W*(?:(?:or|nor|but|unless|except|maybe|perhaps|possibly|probably|presumably|instead|rather|wrong|incorrect|"
    r"incorrectly|mistaken|nope|nah|guess|guessing|unsure|uncertain|not sure|i (?:guess|think|believe|doubt|am)|"
    r"although|though|however|otherwise|wait|hmm|oops|sorry)\b.*"
    r"|(?:not|never)\W*|not (?:it|sure|this|that|so|correct|right|true|quite|really|certain|the|an?)\b.*"
    r"|(?:is|was|are|isn|wasn|can|could|might|may|must|should|would|does|doesn)\b.*"
    r"|cannot be (?:it|right|correct|the answer)\b.*)"
)
_CONFIRMED = re.compile(
    r"(?i)\W*is (?:the |my )?(?:final |correct |right |best )?(?:correct|right|answer|choice|option|one)\W*"
)
_AFTER_DOUBT = re.compile(
    r"(?i)[,;(.\u2014-]\s*(?:or|maybe|perhaps|possibly|probably|but|no wait|wait|not sure|i guess|i think|unsure|"
    r"unless)\b|\?"
)


def split_choice(text: str) -> tuple[str, str] | None:
    """The letter of an option and what stands behind it; None for a text that begins with none.

    Raises `UnreadableError` where that names another option, or takes the letter back.
    """
    choice = _CHOICE.fullmatch(text)
    if choice is None or _NO_CONTENT.match(choice[2]):
        return None
    letter, content = choice[1], choice[2].strip()
    if _leaves_open(letter, " ".join(_LAYOUT.sub(r" \1 ", content).split())):
        raise UnreadableError(f"more than the option {letter}, or less")
    return letter, content


def _leaves_open(letter: str, said: str) -> bool:
    if not said or _CONFIRMED.fullmatch(said):
        return False
    if _DOUBT.fullmatch(said) or _AFTER_DOUBT.search(said):
        return True
    if _SEVERAL.fullmatch(said):
        return False
    labels = {label[1] or label[2] for label in _LABEL.finditer(said)}
    return bool(labels - {letter}) or _names_another(letter, said)


def _names_another(own: str, said: str) -> bool:
    """Whether a bare letter is another option and no name in what the option says: (A) B, (B) 5 not A, (A) 4 or B."""
    letters = list(_LETTER.finditer(said))
    words = {word.lower() for word in re.findall(r"[^\W\d_]{2,}", said)}
    others = [letter for letter in letters if letter[0] != own]
    if others and (words <= _LINKS or not words.isdisjoint(_OF_ANSWERS)):
        return True
    if any(not letter.start() and not re.match(r"\s+[a-z]", said[1:]) for letter in others):
        return True  # B 4 cm; but B is greater
    return any(_JOINED.search(said[: letter.start()]) is not None for letter in letters)
