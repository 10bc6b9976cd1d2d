"""One spelling for what means the same: Unicode signs, layout, plain-text forms and LaTeX variants in canonical LaTeX.

Nothing is dropped that carries meaning: layout becomes a blank, so that `2$5` does not turn into 25. Afterwards the
text has `\\frac{a}{b}`, `\\sqrt{a}`, `\\cdot`, `\\text{…}`, `^{…}`, no math delimiters, and no decimal that repeats.

Place in the flow: answer text → **canonical text** → value.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from grpo_rewards_math.accuracy.amounts import in_digits
from grpo_rewards_math.accuracy.problems import TooLargeError

__all__ = ["balanced_end", "canonical", "without_tags"]

_MAX_DEPTH = 50

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ"
_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
_SIGNS = {
    **dict.fromkeys("−–‒﹣－➖‐‑", "-"),
    **dict.fromkeys("×⋅·∗✕✖•∙⨯", r" \cdot "),
    **dict.fromkeys("÷∕➗⁄", "/"),
    "∞": r"\infty ",
    "≤": r"\le ",
    "⩽": r"\le ",
    "≥": r"\ge ",
    "⩾": r"\ge ",
    "≠": r"\ne ",
    "≈": r"\approx ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∈": r"\in ",
    "±": r"\pm ",
    "∓": r"\mp ",
    "°": r"^\circ ",
    "º": r"^\circ ",
    "∅": r"\emptyset ",
    "ℝ": r"\mathbb{R}",
    "ℤ": r"\mathbb{Z}",
    "ℕ": r"\mathbb{N}",
    "ℚ": r"\mathbb{Q}",
    "ℂ": r"\mathbb{C}",
    "√": r"\sqrt ",
    "∛": r"\sqrt[3] ",
    "…": "...",
    "、": ",",
    "。": ".",
    "“": '"',
    "”": '"',
    "’": "'",
    "′": "'",
    "→": r"\to ",
    "⟨": "(",
    "〈": "(",
    "⟩": ")",
    "〉": ")",
    "∠": r"\angle ",
    "∖": r"\setminus ",
    "∀": r"\forall ",
    **{chr(0x200B + i): "" for i in range(4)},
    "\u2060": "",
    "\ufeff": "",
    "\u200e": "",
    "\u200f": "",
}
_SIGN_TABLE = str.maketrans(_SIGNS)

_WORDED = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|mbox|hbox|mathrm|mathsf|rm)\s*\{([^{}]*)\}")
_STYLED = re.compile(
    r"\\(?:mathbf|mathit|mathcal|boldsymbol|bm|pmb|underline|mathbin|mathop|emph|ensuremath|displaystyle|fbox|boxed"
    r"|(?:text)?color\s*\{[^{}]*\})\s*(?=\{)"
)
_LAYOUT = re.compile(
    r"\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits|strut|hfill|nonumber"
    r"|quad|qquad|enspace|thinspace|medspace|thickspace|bf|it|rm|hspace\*?\{[^{}]*\}|color\{[^{}]*\})(?![a-zA-Z])"
)
_SPACE = re.compile(r"(?<!\\)\\[,;:!> ]|~")
_DOUBLED = re.compile(r"\\\\(?=[a-zA-Z])")
_GROUPED = re.compile(r"(?<![\d.])\d{1,3}(?:(?:,?\\!|\\[,;: ]|\{,\}(?:\\!)?|\u2009|\u202f|\u00a0|~)\s*\d{3})+(?!\d)")
_PLAIN_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?: \d{3})+(?!\d)")
_TAGGED = re.compile(r"<(b|strong|i|em|u|p|span|div|code|mark|center)>([^<>]*)</\1>", re.IGNORECASE)
_EMPHASIZED = re.compile(r"(\*{1,3}|_{1,2})([^*_]+)\1")
_DELIMITER = re.compile(r"\$\$?|\\[()\[\]]")
_NAMES = (
    (re.compile(r"\\(?:d|t|c|x)frac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\\(?:d|t)binom(?![a-zA-Z])"), r"\\binom"),
    (re.compile(r"\{([^{}\\]*)\\choose(?![a-zA-Z])([^{}\\]*)\}"), r"\\binom{\1}{\2}"),
    (re.compile(r"\\(?:leq|leqslant|leqq)(?![a-zA-Z])|<=|=<"), r"\\le "),
    (re.compile(r"\\(?:geq|geqslant|geqq)(?![a-zA-Z])|>=|=>"), r"\\ge "),
    (re.compile(r"\\neq(?![a-zA-Z])|\\not\s*=|!="), r"\\ne "),
    (re.compile(r"\\lt(?![a-zA-Z])"), "<"),
    (re.compile(r"\\gt(?![a-zA-Z])"), ">"),
    (re.compile(r"\\(?:times|ast|cdotp)(?![a-zA-Z])"), r"\\cdot "),
    (re.compile(r"\\div(?![a-zA-Z])"), "/"),
    (re.compile(r"\\(?:varnothing|O)(?![a-zA-Z])"), r"\\emptyset "),
    (re.compile(r"\\(?:lbrace)(?![a-zA-Z])"), r"\\{"),
    (re.compile(r"\\(?:rbrace)(?![a-zA-Z])"), r"\\}"),
    (re.compile(r"\\(?:lbrack)(?![a-zA-Z])"), "["),
    (re.compile(r"\\(?:rbrack)(?![a-zA-Z])"), "]"),
    (re.compile(r"\\[lr]vert(?![a-zA-Z])"), "|"),
    (re.compile(r"\\langle(?![a-zA-Z])"), "("),
    (re.compile(r"\\rangle(?![a-zA-Z])"), ")"),
    (re.compile(r"\\(?:smallsetminus|backslash)(?![a-zA-Z])"), r"\\setminus "),
    (re.compile(r"\\(?:l|c|d|)dots[bcimo]?(?![a-zA-Z])|\\ldots(?![a-zA-Z])"), "..."),
    (re.compile(r"\^\s*\{?\s*\\(?:circ|degree)(?![a-zA-Z])\s*\}?|\\(?:degree|textdegree)(?![a-zA-Z])"), r"^\\circ "),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\(?:infin|inf)(?![a-zA-Z])"), r"\\infty "),
    (re.compile(r"\\(?:Re|R)(?![a-zA-Z])"), r"\\mathbb{R}"),
    (re.compile(r"\\(?:and|wedge|land)(?![a-zA-Z])"), r"\\text{and}"),
    (re.compile(r"\\(?:or|vee|lor)(?![a-zA-Z])"), r"\\text{or}"),
    (re.compile(r"\\operatorname\*?\s*\{([a-zA-Z]+)\}"), r"\\\1 "),
    (re.compile(r"\\(?:arc(sin|cos|tan))(?![a-zA-Z])"), r"\\arc\1 "),
    (re.compile(r"\*\*(?=\s*[-\d({a-zA-Z])(?<=[\d)}a-zA-Z]\*\*)"), "^"),
    (re.compile(r"\*"), r"\\cdot "),
    (re.compile(r"\\log\s*_\s*(?:\{(\w+)\}|(\w))\s*(\d+)"), r"\\log_{\1\2}(\3)"),
    (re.compile(r"(?<=[\d)}])\s*(?:percent|per cent|pct)\b"), "%"),
    (re.compile(r"(?<![a-zA-Z\\])(pi|infinity)(?![a-zA-Z])"), r"\\\1 "),
    (re.compile(r"(?<![a-zA-Z\\])(sin|cos|tan|cot|sec|csc|ln|log|exp|arctan|arcsin|arccos)(?=\s*[(\d\\])"), r"\\\1 "),
    (re.compile(r"\\infinity(?![a-zA-Z])"), r"\\infty "),
)
_ANGLE_BRACKETS = re.compile(r"(?:^|(?<==))\s*<([^<>=]*,[^<>=]*)>\s*$")
_MEASURED = (
    r"(?:(?:\\text\{)?m\}?\s*)?\\(?:angle|measuredangle|sphericalangle|triangle)(?![a-zA-Z])\s*\{?\s*([A-Z]{1,3}|\d)\s*\}?",
    r"\\(?:overline|overrightarrow|overleftrightarrow|vec|hat|widehat|mathbf|mathrm)\s*\{\s*([A-Za-z]{1,3})\s*\}",
    r"\|([A-Z]{2})\|",
)
_NAME_OF_MEASURE = re.compile(rf"(?:{'|'.join(_MEASURED)})(?=\s*(?:=|\\approx(?![a-zA-Z])))")
"""\\angle ABC, \\overline{AB}, |AB| or \\vec{v} before a sign of equality, where it names what has the value."""
_E_NOTATION = re.compile(r"(?<![\w.\\])(\d+\.?\d*|\.\d+)[eE]([+-]?\d+)(?![\w.])")
_REPEATING = re.compile(
    r"(?<![\d.])(\d*)\.(\d*)(?:\\(?:overline|bar|dot)\s*\{(\d+)\}|\\(?:overline|bar|dot)\s*(\d)|\((\d+)\)|(?P<r>(\d)\7{2,})\s*\.{3})"
)
_MIXED = re.compile(r"(?<![\d.,}\w)^_])(\d+)\s*\\frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}")
_PLAIN_MIXED = re.compile(r"(?<![\d.,/^_\w})])(\d+)\s+(\d+)\s*/\s*(\d+)(?![\d./])")


def canonical(text: str) -> str:
    """The text in canonical LaTeX; may be empty. Raises `TooLargeError` for brackets nested beyond any answer."""
    if _deepest(text) > _MAX_DEPTH:
        raise TooLargeError(f"nested deeper than {_MAX_DEPTH}")
    text = _without_markup(_plain_signs(re.sub(r"^\s*~(?=\s*[-\d])", r"\\approx ", text)))
    if "\\begin" not in text:
        text = _DOUBLED.sub(r"\\", text)  # escaped once too often, in JSON as a rule
    text = _GROUPED.sub(lambda match: re.sub(r"[^\d]", "", match[0]), text)
    text = _SPACE.sub(" ", text)
    text = in_digits(_words(text))
    for pattern, replacement in _NAMES:
        text = pattern.sub(replacement, text)
    text = _LAYOUT.sub(" ", _STYLED.sub("", text))
    text = _NAME_OF_MEASURE.sub(lambda match: _name(next(filter(None, match.groups()))), text)
    text = _ANGLE_BRACKETS.sub(r"(\1)", text)
    text = _PLAIN_GROUPED.sub(lambda match: match[0].replace(" ", ""), text)
    text = _arguments(text)
    text = _E_NOTATION.sub(r"(\1\\cdot 10^{\2})", text)
    text = _REPEATING.sub(_repeating, text)
    text = _PLAIN_MIXED.sub(_mixed, _MIXED.sub(_mixed, text))
    return _trimmed(text)


def _name(letters: str) -> str:
    return f"{letters} " if letters.isalpha() else f"a_{letters} "


def without_tags(text: str) -> str:
    """Without tags of HTML that only say how a text looks."""
    return _TAGGED.sub(r" \2 ", text)


def _deepest(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _plain_signs(text: str) -> str:
    """Unicode signs as LaTeX; digits and letters in other widths as plain ones."""
    text = re.sub(f"[{_SUPERSCRIPTS}]+", lambda m: "^{" + unicodedata.normalize("NFKC", m[0]) + "}", text)
    text = re.sub(f"[{_SUBSCRIPTS}]+", lambda m: "_{" + unicodedata.normalize("NFKC", m[0]) + "}", text)
    text = re.sub("[¼-¾⅐-⅞]", lambda m: " " + unicodedata.normalize("NFKC", m[0]).replace("⁄", "/"), text)
    text = text.translate(_SIGN_TABLE)
    text = "".join(_greek(c) if "Ͱ" <= c <= "Ͽ" else c for c in text)
    return unicodedata.normalize("NFKC", text).translate(_SIGN_TABLE)


def _greek(character: str) -> str:
    name = unicodedata.name(character, "")
    match = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)", name)
    if match is None:
        return character
    letter = match[2].lower().replace("lamda", "lambda")
    return f"\\{letter if match[1] == 'SMALL' else letter.capitalize()} "


def _without_markup(text: str) -> str:
    """Without math delimiters, Markdown emphasis and quotes; a dollar sign that delimits nothing is a currency."""
    text = without_tags(text).strip().strip('`"').strip()
    emphasized = _EMPHASIZED.fullmatch(text)
    text = emphasized[2].strip() if emphasized is not None else text
    text = text.replace("\\$", " \\text{dollars} ")
    if len(re.findall(r"\$\$?", text)) % 2:
        text = re.sub(r"\$", r" \\text{dollars} ", text, count=1) if text.count("$") == 1 else text
    text = re.sub("[€£¥₹₩]", lambda m: f" \\text{{{unicodedata.name(m[0]).split()[0].lower()}}} ", text)
    return _DELIMITER.sub(" ", text)


def _words(text: str) -> str:
    r"""All upright text as `\text{…}`; single letters as themselves, for `\mathrm{e}` is e."""
    for _ in range(3):
        changed = _WORDED.sub(_word, text)
        if changed == text:
            return text
        text = changed
    return text


def _word(match: re.Match[str]) -> str:
    content = match[1].strip()
    if not content:
        return " "
    if re.fullmatch(r"[-+]?[\d.,]+%?", content) or re.fullmatch(r"[eiEI]", content):
        return f" {content} " if len(content) > 1 else content
    counted = re.fullmatch(r"([-+]?\d[\d.,]*)\s+([A-Za-z]+(?:[/ -][A-Za-z]+){0,4})", content)
    if counted is not None:
        return f" {counted[1]} \\text{{{counted[2]}}}"
    if content.lower() in ("degree", "degrees"):
        return r"^\circ "
    if content.lower() in ("percent", "per cent", "pct", "%", "\\%"):
        return "%"
    return ", ".join(f"\\text{{{part}}}" for part in re.split(r",\s*|\s+(?:and|or)\s+", content))


def _arguments(text: str) -> str:
    r"""`\frac12`, `\frac{1}2`, `\sqrt2`, `\binom73`, `\sqrt(x)` and `sqrt(x)` with their arguments in braces."""
    text = re.sub(r"(?<![a-zA-Z\\])sqrt(?=\s*\()", r"\\sqrt", text)
    out, position = [], 0
    for match in re.finditer(r"\\(frac|binom|sqrt)(?![a-zA-Z])\s*(\[[^\[\]]*\])?", text):
        if match.start() < position:
            continue  # inside an argument already taken
        out.append(text[position : match.start()])
        position, arguments = match.end(), []
        for _ in range(1 if match[1] == "sqrt" else 2):
            argument, position = _argument(text, position, takes_group=match[1] == "sqrt")
            arguments.append("{" + _arguments(argument) + "}")
        out.append(f"\\{match[1]}{match[2] or ''}" + "".join(arguments))
    return "".join(out) + text[position:]


def _argument(text: str, start: int, *, takes_group: bool) -> tuple[str, int]:
    """The argument that begins at `start`, without its braces, and where it ends."""
    while start < len(text) and text[start] == " ":
        start += 1
    if text.startswith("{", start) or (takes_group and text.startswith("(", start)):
        end = balanced_end(text, start)
        return text[start + 1 : end - 1], end
    token = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?" if takes_group else r"\\[a-zA-Z]+|\d").match(text, start)
    if token is None:
        return text[start : start + 1], min(start + 1, len(text))
    if token[0] in ("\\sqrt", "\\frac", "\\binom"):
        end = token.end()
        for _ in range(1 if token[0] == "\\sqrt" else 2):
            _inner, end = _argument(text, end, takes_group=token[0] == "\\sqrt")
        return text[start:end], end
    return token[0], token.end()


def balanced_end(text: str, start: int) -> int:
    """The position after the bracket that closes the one at `start`; the end of the text when none does."""
    opening = text[start]
    closing = {"{": "}", "(": ")", "[": "]"}[opening]
    depth, position = 0, start
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        depth += (text[position] == opening) - (text[position] == closing)
        position += 1
        if depth == 0:
            return position
    return len(text)


def _repeating(match: re.Match[str]) -> str:
    """A repeating decimal as the fraction it is: 0.1(6) = 1/6."""
    whole, fixed = match[1] or "0", match[2]
    period = match[3] or match[4] or match[5] or match["r"][0]
    if match["r"] and fixed.endswith(period):
        fixed = fixed.rstrip(period)
    scale = 10 ** len(fixed)
    value = Fraction(int(whole + fixed), scale) + Fraction(int(period), scale * (10 ** len(period) - 1))
    return f"(\\frac{{{value.numerator}}}{{{value.denominator}}})"


def _mixed(match: re.Match[str]) -> str:
    """A whole number before a proper fraction is added to it; before an improper one it is a factor."""
    whole, numerator, denominator = match[1], match[2], match[3]
    sign = "+" if int(numerator) < int(denominator) else "\\cdot "
    return f"({whole}{sign}\\frac{{{numerator}}}{{{denominator}}})"


def _trimmed(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    while text.endswith("\\\\"):
        text = text[:-2].strip()  # the end of a line
    while text and (text[-1] in ".,;:!" or text[0] in ",;:") and not text.endswith("..."):
        if text[-1] == "!" and re.search(r"[\d)}a-zA-Z]!+$", text):
            return text  # a factorial
        text = (text[:-1] if text[-1] in ".,;:!" else text[1:]).strip()
    return text[1:].strip() if re.match(r"=(?!=)", text) else text  # = 4
