"""`multimodal_accuracy`: does the answer to a question about an image say what the reference says?

Mathematics decides first, as in `math_reward`. Where it finds no equality, the words do, unless both are mathematics:
the text of the answer against that of the reference, spelling and form aside.

Place in the flow: completion → answer text → mathematics, or else **words** → score.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from grpo_rewards_math.accuracy.answer import answer_in, opens_thought, reference_in, spoken_in
from grpo_rewards_math.accuracy.reward import agrees, is_mathematics

__all__ = ["multimodal_accuracy", "plain_words"]

_MAX_CHARACTERS = 2_000
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBERS = {word: str(value) for value, word in enumerate(_ONES)} | {
    word + (f" {_ONES[one]}" if one else ""): str(20 + 10 * ten + one)
    for ten, word in enumerate(_TENS)
    for one in range(10)
}
"""`three` -> `3`, `twenty one` -> `21`."""
_WRAPPED = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textit|mbox)\s*\{([^{}]*)\}")
_EDGES = " \t\r\n.,;:!?\"'`´‘’“”„«»*_$"
"""What may stand around words and says nothing."""
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-‐-―_](?=[^\W\d_])")
"""Between two letters; elsewhere it may be a minus."""
_LETTER = re.compile(r"[a-z]")
_ARTICLE = re.compile(r"^(?:an?|the)\s+(?=\w{2,})")
_CHOICE = re.compile(r"^(?:option|choice|answer)\s+(?=\(?[a-z]\)?$)")
_BRACKETS = re.compile(r"^(?:\(([^\W\d_ ]+)\)|\[([^\W\d_ ]+)\])$")
"""Around a single word or letter."""


def multimodal_accuracy(
    completions: Sequence[str], solution: Sequence[object], prompts: Sequence[str] | None = None
) -> list[float | None]:
    """1.0 when the answer says what the reference in `solution` says, else 0.0; None where there is no reference.

    The answer is the content of the last answer block after the thinking, else of the last box, else all that is said
    after the thinking. A reference is what its answer block or box holds, else all of it.
    """
    opened = [opens_thought(prompt) for prompt in prompts or [""] * len(completions)]
    rows = zip(completions, solution, opened, strict=True)
    return [_judge(text, reference, in_thought) for text, reference, in_thought in rows]


def _judge(completion: str, solution: object, thought_open: bool) -> float | None:
    stated = reference_in(solution)
    if stated is None or not stated.strip():
        return None
    answer = _answer(completion, thought_open)
    if answer is None or not answer.strip() or len(answer) > _MAX_CHARACTERS:
        return 0.0
    return float(agrees(answer, stated) or _agree_in_words(answer, stated))


def _answer(completion: str, thought_open: bool) -> str | None:
    answer = answer_in(completion, thought_open=thought_open)
    spoken = spoken_in(completion, thought_open=thought_open)
    if answer is not None or spoken is None or "<answer" in spoken or "boxed" in spoken:
        return answer
    return spoken


def _agree_in_words(answer: str, stated: str) -> bool:
    said, meant = plain_words(answer), plain_words(stated)
    if said == meant and _LETTER.fullmatch(meant):
        return True  # a choice
    if is_mathematics(answer) and is_mathematics(stated):
        return False
    if said == meant:
        return bool(meant)
    # A number that is written as a word is mathematics again, on either side.
    digits = _in_digits(said), _in_digits(meant)
    return digits != (said, meant) and (digits[0] == digits[1] or agrees(*digits))


def _in_digits(words: str) -> str:
    """The words with the number that they begin with in digits: `three cubes` -> `3 cubes`."""
    parts = words.split(" ")
    for count in (2, 1):
        number = _NUMBERS.get(" ".join(parts[:count]))
        if number is not None:
            return " ".join([number, *parts[count:]])
    return words


def plain_words(text: str) -> str:
    """A text without what makes no difference to its words: case, kinds of blanks and quotes, marks around it, LaTeX's
    wrapping of text, an article at its beginning, brackets around a single word."""
    words = unicodedata.normalize("NFKC", text)
    for _ in range(3):
        words = _WRAPPED.sub(r"\1", words).strip(_EDGES)
        words = _BRACKETS.sub(lambda match: match[1] or match[2], words)
    words = re.sub(r"\s+", " ", _HYPHEN.sub(" ", words.casefold().replace("’", "'"))).strip()
    return _ARTICLE.sub("", _CHOICE.sub("", words))
