"""Answers that leave open what they say: several options, and numbers with a word that changes or doubts them.

Tables of answer, reference and the right score, then the same made up from parts: no hedge of any kind is paid, and
every honest form is.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.grpo_rewards_math.accuracy.forms import boxed, tagged

OPTIONS = [
    (r"\text{(A)(B)(C)(D)}", "A", 0.0),
    ("A. B. C.", "A", 0.0),
    (r"(A) \text{ or maybe } (B)", "A", 0.0),
    (r"\text{(B) not A}", "B", 0.0),
    (r"\text{(A) 4 (B) 5}", "A", 0.0),
    (r"\text{(A) no (B) yes}", "A", 0.0),
    ("(A) B", "A", 0.0),
    ("(A)(B)", "A", 0.0),
    ("(A) 4(B)", "A", 0.0),
    ("A: B", "A", 0.0),
    ("A.B", "A", 0.0),
    (r"(A) \; (B)", "A", 0.0),
    (r"\text{(A) = (B)}", "A", 0.0),
    (r"\text{(A)-(D)}", "A", 0.0),
    (r"\text{(A) maybe}", "A", 0.0),
    (r"\text{(A)?}", "A", 0.0),
    (r"\text{(A) I guess}", "A", 0.0),
    (r"\text{(A) is wrong}", "A", 0.0),
    (r"\text{(A) isn't right}", "A", 0.0),
    (r"\text{(A) not correct}", "A", 0.0),
    (r"\text{(A) but perhaps option B}", "A", 0.0),
    (r"\text{(A) 12, or (B) 13}", "A", 0.0),
    (r"\text{(A) 4, wait, B}", "A", 0.0),
    (r"\text{A. although it could be C}", "A", 0.0),
    (r"\text{A. or something else}", "A", 0.0),
    (r"(A) \cup (B)", "A", 0.0),
    # what an option says may be anything
    (r"\text{(A)}", "A", 1.0),
    ("A. 4 cm", "A", 1.0),
    (r"(B) \; 12", "B", 1.0),
    ("[A]", "A", 1.0),
    (r"\text{(E)}", "E", 1.0),
    (r"\text{(E) None of the above}", "E", 1.0),
    (r"\text{(D) Neither A nor B}", "D", 1.0),
    (r"\text{(D) Both A and B}", "D", 1.0),
    (r"\text{(D) A and B only}", "D", 1.0),
    (r"\text{(D) A is greater than B}", "D", 1.0),
    (r"\text{(B) I and III}", "B", 1.0),
    (r"\text{(B) No}", "B", 1.0),
    (r"\text{(B) False}", "B", 1.0),
    (r"\text{(C) not enough information}", "C", 1.0),
    (r"\text{(D) cannot be determined}", "D", 1.0),
    (r"\text{(A) Point B}", "A", 1.0),
    (r"\text{(A) A square}", "A", 1.0),
    ("(A) f(B)", "A", 1.0),
    ("(A) P(A) = 1", "A", 1.0),
    (r"\text{(A) The cat, which is black, sat on the mat.}", "A", 1.0),
    (r"\text{(A) increases or stays the same}", "A", 1.0),
    (r"\text{(C) } 2 \text{ or } 3", "C", 1.0),
    (r"\text{(A) is the correct answer}", "A", 1.0),
    # several options are a set
    (r"\text{A and C}", r"\text{A and C}", 1.0),
    (r"\text{(A), (C)}", "A, C", 1.0),
    ("C, A", "A, C", 1.0),
    ("A", "A, C", 0.0),
    ("A, B, C", "A, C", 0.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), OPTIONS)
def test_one_option_is_a_choice_and_several_are_none(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score
    assert tagged(answer, reference) == score


_LABELS = [
    "({})",
    "{}.",
    "{})",
    "{}:",
    "[{}]",
    r"\text{{({})}}",
    r"\textbf{{({})}}",
    r"\text{{{}.}}",
    r"\mathrm{{({})}}",
]
_SPOKEN = [
    ", ", "; ", " / ", " or ", " or maybe ", ", maybe ", ", possibly ", " but not ", " not ", " nor ", " rather than ",
    " instead of ", " then ", r" \text{ or } ", r" \text{ or maybe } ", ", no wait, ", " could be ", ". Or ", " (or ",
]  # fmt: skip
_JOINTS = [
    *_SPOKEN,
    " ",
    " and ",
    r" \text{ and } ",
    r"\; ",
    r" \lor ",
    r" \cup ",
    r"\quad ",
    " - ",
    " = ",
    " | ",
    " to ",
]
_SAID = ["", " 4", " 4 cm", r" \frac{1}{2}", " yes", " no", " the cat"]
_LETTERS = st.permutations("ABCD").map(lambda letters: letters[:2])


@settings(max_examples=200, deadline=None)
@given(
    letters=_LETTERS,
    labels=st.tuples(st.sampled_from(_LABELS), st.sampled_from([label for label in _LABELS if label[0] in "([\\"])),
    joint=st.sampled_from(_JOINTS),
    said=st.tuples(st.sampled_from(_SAID), st.sampled_from(_SAID)),
)
def test_no_answer_that_names_two_options_is_paid(
    letters: str, labels: tuple[str, str], joint: str, said: tuple[str, str]
) -> None:
    one, other = (label.format(letter) + text for label, letter, text in zip(labels, letters, said, strict=True))
    for reference in letters:
        assert boxed(f"{one}{joint}{other}", reference) == 0.0


@settings(max_examples=100, deadline=None)
@given(
    letters=_LETTERS,
    label=st.sampled_from(_LABELS),
    other=st.sampled_from(["{}", "{}.", "{})", "{}: 5", "{} 5"]),
    joint=st.sampled_from(_SPOKEN),
    said=st.sampled_from(_SAID),
)
def test_no_answer_that_names_another_option_by_its_bare_letter_is_paid(
    letters: str, label: str, other: str, joint: str, said: str
) -> None:
    for reference in letters:
        assert boxed(f"{label.format(letters[0])}{said}{joint}{other.format(letters[1])}", reference) == 0.0


@settings(max_examples=60, deadline=None)
@given(
    letter=st.sampled_from("ABCD"),
    label=st.sampled_from(_LABELS),
    doubt=st.sampled_from(
        ["maybe", "perhaps", "I guess", "not sure", "is wrong", "isn't it", "not", "or another", "?", "could be"]
    ),
)  # fmt: skip
def test_no_option_that_is_taken_back_is_paid(letter: str, label: str, doubt: str) -> None:
    assert boxed(f"{label.format(letter)} \\text{{{doubt}}}", letter) == 0.0


_CONTENTS = [
    "", " 12", " 4 cm", r" \frac{1}{2}", " x^2+1", " the cat sat on the mat", " Paris", " yes", " no", " True",
    " 3 apples and 2 pears", " at least 5", r" \$12.50", " not enough information", " none of these", " A triangle",
    r" \sqrt{2}", " increases", " x = 3", " (1, 2)",
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(letter=st.sampled_from("ABCDE"), label=st.sampled_from(_LABELS), content=st.sampled_from(_CONTENTS))
def test_an_option_with_what_it_says_is_paid(letter: str, label: str, content: str) -> None:
    assert boxed(label.format(letter) + content, letter) == 1.0
    assert boxed(label.format(letter) + content, "J") == 0.0


QUALIFIED = [
    (r"4 \text{ negative}", "4", 0.0),
    (r"4 \text{ below zero}", "4", 0.0),
    (r"4^\circ \text{ below zero}", "4", 0.0),
    (r"4 \text{ nope}", "4", 0.0),
    (r"4 \text{ zero}", "4", 0.0),
    (r"4 \text{ point five}", "4", 0.0),
    (r"4 \text{ over three}", "4", 0.0),
    (r"4 \text{ per mille}", "4", 0.0),
    (r"4 \text{ parts per million}", "4", 0.0),
    (r"4 \text{ wan}", "4", 0.0),
    (r"4 \text{ miles per hour}", "4", 1.0),
    (r"4 \text{ lakh}", "4", 0.0),
    (r"4 \text{ lakh}", "400000", 1.0),
    (r"4 \text{ lakh rupees}", "400000", 1.0),
    (r"3 \text{ crores}", "30000000", 1.0),
    ("4万", "4", 0.0),
    ("4万元", "40000", 1.0),
    (r"4\text{万}", "40000", 1.0),
    (r"4\text{亿人}", "4", 0.0),
    (r"4\text{不对}", "4", 0.0),
    (r"4 \text{ ppm}", "4", 0.0),
    (r"4 \text{ basis points}", "4", 0.0),
    (r"4 \text{ M}", "4", 0.0),
    (r"4 \text{ k}", "4", 0.0),
    (r"4 \text{ K}", "4", 1.0),
    (r"4 \text{ m}", "4", 1.0),
    (r"4 \text{ twelfths}", "4", 0.0),
    (r"4 \text{ approximately}", "4", 0.0),
    (r"4 \text{ or so}", "4", 0.0),
    (r"4 \text{ cm maybe}", "4", 0.0),
    ("4 \\text{ n\u043epe}", "4", 0.0),
    ("4 \\text{ \u00b5m}", "4", 1.0),
    (r"4 \text{ negative integers}", "4", 1.0),
    (r"4 \text{ two-point shots}", "4", 1.0),
    (r"4 \text{ three digit numbers}", "4", 1.0),
    (r"4 \text{ zeros}", "4", 1.0),
    (r"4 \text{ mistakes}", "4", 1.0),
    (r"4 \text{ pairs of socks}", "4", 1.0),
    (r"4 \text{ students left}", "4", 1.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), QUALIFIED)
def test_a_word_that_changes_a_number_is_no_unit(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score


_CHANGING = [
    "negative", "nope", "no", "not", "never", "zero", "two", "seventeen", "twenty", "hundred", "million", "lakh",
    "wrong", "false", "maybe", "or more", "or so", "approximately", "squared", "halved", "doubled", "thousandths",
    "thirds", "fifteenth", "below zero", "minus one", "plus two", "and a half", "is wrong", "isn't right", "at most",
    "infinity",
    "imaginary", "dozen", "ppm", "bn", "times two", "to the fourth", "impossible", "unless", "more", "less", "unknown",
]  # fmt: skip
_THINGS = [
    "apples", "cm", "ways", "students", "square units", "km/h", "dollars", "integers", "people", "solutions", "years",
    "cats", "degrees", "teams", "real roots", "pages", "miles per hour", "liters", "sides", "points", "tennis balls",
]  # fmt: skip
_NUMBERS = st.sampled_from(["4", "17", "2.5", r"\frac{1}{2}", "1,234", "-3"])


@settings(max_examples=200, deadline=None)
@given(
    number=_NUMBERS,
    word=st.sampled_from(_CHANGING),
    thing=st.sampled_from(["", *_THINGS]),
    form=st.sampled_from([r"{} \text{{ {}}}", "{} {}", r"{}\text{{ ({})}}", r"{} \mathrm{{{}}}", r"{} \text{{ {}!}}"]),
)
def test_no_number_with_a_word_that_changes_it_is_paid(number: str, word: str, thing: str, form: str) -> None:
    assert boxed(form.format(number, f"{thing} {word}".strip()), number) == 0.0


@settings(max_examples=100, deadline=None)
@given(
    number=_NUMBERS,
    adjective=st.sampled_from(["", "red ", "negative ", "wrong ", "more ", "different ", "positive ", "fifth "]),
    thing=st.sampled_from(_THINGS),
    form=st.sampled_from([r"{} \text{{ {}}}", "{} {}", r"{}\ \mathrm{{{}}}", r"\text{{{} {}}}"]),
)
def test_a_number_of_things_is_paid(number: str, adjective: str, thing: str, form: str) -> None:
    if "frac" in number and form.startswith(r"\text"):
        return
    assert boxed(form.format(number, adjective + thing), number) == 1.0
