"""The value that a sentence in an answer block announces. Only sentences of known form announce one.

Such a sentence is links (`so`, `therefore`), an announcement (`the answer is`, `we get`, `there are`) and a value, or a
value and `is the answer`. Whatever else is said of a number (`twice 4`, `I doubt that it is 4`) announces nothing. What
stands before the sentence may explain, but not doubt.

Place in the flow: answer text → **the announced part** → canonical text → value.
"""

from __future__ import annotations

import re

from grpo_rewards_math.accuracy.problems import UnreadableError
from grpo_rewards_math.accuracy.spelling import without_tags

__all__ = ["announced"]

_MOST_STARTS = 3
_LINK = (
    r"(?:(?:and |but )?(?:so|thus|hence|therefore|then|consequently|accordingly|finally|now|overall|in conclusion|"
    r"in total|altogether|as a result|(?:this|that|which) means(?: that)?|it follows that|since then)[,:]?\s+)"
)
_QUALIFIED = r"(?:(?:final|correct|right|required|desired|exact|simplified|numerical|actual|whole|overall) ){0,2}"
_QUANTITY = (
    r"(?:number|value|total|sum|difference|product|quotient|remainder|ratio|average|mean|median|mode|range|minimum|"
    r"maximum|(?:minimum|maximum|smallest|largest|least|greatest|total|average|mean|surface|expected) "
    r"(?:value|number|area|cost|distance|time|speed|price|possible value|amount|integer)|area|perimeter|circumference|"
    r"volume|length|width|height|depth|radius|diameter|distance|speed|velocity|rate|time|duration|cost|price|profit|"
    r"discount|tax|amount|probability|percentage|angle|slope|measure|age|weight|mass|temperature|limit|integral|"
    r"derivative|determinant|coefficient|degree|root|roots|vertex|intercept|solution set|domain|equation|expression|"
    r"fraction|integer|base|exponent|interval|point|coordinates|inverse|matrix|"
    r"(?:(?:last|first|units?|ones|tens|hundreds|leftmost|rightmost) )?digit)"
)
_ABOUT = (
    r"(?:,? (?!(?:not|answers?|results?|solutions?|digit|modulo|mod|plus|minus|times|squared|cubed|twice|half|wrong|"
    r"incorrect|false|opposite|negative|less|more|than|if|unless|or|either|neither|but|is|are|was|were|equals|another|"
    r"other|different|guess|guesses|mistake)\b)[\w${}^\\+'()/-]+){0,12}"
)
_ANSWER = (
    rf"(?:(?:the|my|our) )?{_QUALIFIED}(?:answer|result|solution|ans)s?(?:\(s\))?"
    r"(?: (?:to|of|for) (?:the|this|your|our) (?:question|problem|equation|exercise|system|inequality))?"
)
_IS = (
    r"(?:\s+(?:is|are|was|were|equals?|becomes?|must be|will be|comes (?:out )?to|turns out to be|remains?)"
    r"(?: (?:thus|therefore|then|hence|simply|just|indeed|now|equal to|given by|exactly))?\s*[:,]?\s*|\s*(?:=|:)\s*)"
)
_COUNTED = (
    r"\s+(?:(?:now|then|will|still|also|only|each|would|can|must|in total|altogether|therefore|thus|should) ){0,2}"
    r"(?:has|have|had|needs?|needed|gets?|got|pays?|paid|spends?|spent|earns?|earned|sells?|sold|buys?|bought|makes?|made|"
    r"eats?|ate|uses?|used|saves?|saved|walks?|walked|runs?|ran|drives?|drove|reads?|gives?|gave|takes?|took|owes?|owed|"
    r"receives?|received|collects?|collected|weighs?|weighed|costs?|cost)\s+"
)
_NOBODY = (
    r"(?!(?:no|nobody|none|nothing|neither|never|not|some|someone|somebody|many|half|twice|wrong|false|anyone|whoever|"
    r"what|who|which|if|unless|suppose|is|are|maybe|perhaps|they say)\b)"
)
_ANNOUNCEMENT = (
    rf"(?:and )?(?:{_ANSWER}{_IS}"
    rf"|(?:(?:the|our|its|this|that|his|her|their) )?{_QUALIFIED}{_QUANTITY}{_ABOUT}{_IS}"
    rf"|(?:it|this|that|which|these|they|he|she){_IS}|(?:it|that)['’]s\s+"
    r"|there (?:are|is|were|was|will be|must be)(?: (?:thus|therefore|then|only|exactly|now))?\s+"
    rf"|(?:she|he|they|we|it|i|you|{_NOBODY}(?-i:[A-Z])\w+){_COUNTED}"
    rf"|{_NOBODY}(?-i:[A-Z])\w+ (?:is|are|was|were)\s+"
    r"|(?:we|i|you|one|which|this)(?: (?:then|thus|therefore|finally|now|can|will|also|must))? "
    r"(?:get|gets|got|gives?|yields?|have|find|found|obtain|conclude|see|know|compute|deduce|arrive at|end up with)"
    r"(?: that)?\s*:?\s+|(?:giving|yielding|getting|obtaining)\s+"
    r"|\$?[a-zA-Z](?:_\w)?\$?\s+(?:is|equals|must be|is equal to)\s+"
    rf"|(?:the )?{_QUALIFIED}(?:option|choice)(?: is)?\s*:?\s+"
    r"|equals\s+)"
)
_CHINESE = (
    r"(?:(?:所以|因此|故|那么|则)[,，]?\s*)?"
    r"(?:(?:最终|正确)?答案(?:是|为)?\s*[:：]?\s*|答\s*[:：]\s*|[一总]?共有?\s*|等于\s*|得\s*)"
)
_BEFORE = re.compile(
    rf"(?:{_LINK}{{1,3}}(?:{_ANNOUNCEMENT})?(?:{_ANNOUNCEMENT})?|{_ANNOUNCEMENT}{{1,2}}|{_CHINESE})", re.I
)
_AFTER = re.compile(
    rf"(?:,? (?:altogether|in total|in all|total|left|remaining|respectively|now|as required|overall)"
    rf"|\s+(?:is|are) (?:therefore |thus |indeed )?{_ANSWER})[.!\s]*$",
    re.I,
)
_ENDS_IN_ANSWER = re.compile(rf"\s(?:is|are) (?:therefore |thus |indeed )?{_ANSWER}[.!\s]*$", re.I)
_START = re.compile(r"(?:[.;,!]\s+|\n\s*|[。；，]\s*)")
_DOUBT = re.compile(
    r"(?i)\b(?:doubt\w*|wrong|incorrect|false|untrue|say|says|said|anything|unless|if|suppose|assum\w+|neither|nor|den[yi]\w*|"
    r"reject\w*|guess\w*|maybe|perhaps|possibly|probably|or|either|never|no|none|nothing|opposite|contrary|pretend|joke|"
    r"lie|lies|imagine|unknown|mistake\w*|cannot|silly|believe|think|thinks|thought|claim\w*|would|could|might|may|sure|"
    r"ignore|disregard|except|instead|other|another|question)\b|n['’]t\b|[?~≈]"
)
_WRAPPED = re.compile(r"\\(?:text(?:bf|it|rm)?|mathrm|mbox)\s*\{([^{}]*)\}")


def announced(text: str) -> list[str]:
    """The parts of a text that may be the value its last sentence announces, the likeliest first.

    Raises `UnreadableError` when no sentence of it has a known form.
    """
    text = _WRAPPED.sub(r"\1", without_tags(text)).replace("**", "").replace("__", "")
    text = re.sub(r"[^\S\n]+", " ", text).strip()
    doubt, is_answer = _DOUBT.search(text), _ENDS_IN_ANSWER.search(text) is not None
    begins = []
    for start in [0, *(match.end() for match in _START.finditer(text))]:
        if doubt is not None and doubt.start() < start:
            break
        before = _BEFORE.match(text, start)
        if before is not None:
            begins.append(before.end())
        elif is_answer:
            begins.append(start)
    if not begins:
        raise UnreadableError("no sentence that announces a value")
    return [_AFTER.sub("", text[begin:]) for begin in [begins[0], *begins[1:][-_MOST_STARTS + 1 :]]]
