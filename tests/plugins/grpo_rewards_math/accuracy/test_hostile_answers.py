"""Answers made to hang, crash or confuse the judge.

Tables of answer, reference and the right score. An answer stands alone in an answer block, in a box or without.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_rewards_math.accuracy.reward import judge
from tests.plugins.grpo_rewards_math.accuracy.forms import boxed, tagged

REFUSED = [
    r"9^{9^{9^{9}}}",
    r"\frac{7^{(7^{(7^7)})}-1}{3}",
    r"(((9^9)^9)^9)^{9^9}",
    r"{9^{9}}^{9^{9}}",
    r"10^{10^{10}}",
    r"1.5e999999999",
    r"1e-999999999",
    r"99999999!",
    r"((5!)!)!",
    r"\sqrt{2} \cdot 100!!",
    r"x + 30! !",
    r"(10^{1000})!",
    r"\binom{1000000}{500000}",
    r"\sum_{k=1}^{10^{9}}\frac{1}{k}",
    r"\prod_{k=1}^{10^8} k",
    r"\pi^{10^{10}}",
    r"\sqrt{9^{9^{9}}}",
    "9" * 1_900,
    "(" * 900 + "7" + ")" * 900,
    "-" * 1_901 + "7",
    "1+" * 900 + "1",
    r"\frac{1}{" * 150 + "2" + "}" * 150,
    r"\sqrt{1+" * 90 + "2" + "}" * 90,
    "{" * 1_900,
    r"\left(" * 300,
    "7" + "!" * 1_000,
    "7" * 3_000,
    " " * 100_000 + "7 8",
    "\\boxed{" * 2_000,
    "7," * 900,
    "\\frac" * 300,
    "x^" * 500 + "2",
    "\\text{a}" * 200,
    "$" * 1_500,
    "(A) " * 480,
    "(A) foo " + "B " * 900,
    r"k\pi, " * 330 + r"k \in \mathbb{Z}",
    ", " * 950 + r"n \in Q",
    "]1,2[" * 380,
    r"\mathbb R \setminus \{" + ",".join(map(str, range(190))) + r"\}",
    "|x|<" * 400 + "1",
    "4" + "万" * 1_900,
]


@pytest.mark.parametrize("answer", REFUSED, ids=range(len(REFUSED)))
def test_what_would_take_too_long_is_refused_at_once(answer: str) -> None:
    began = time.process_time()
    assert boxed(answer, "7") == 0.0
    assert tagged(answer, "7") == 0.0
    assert judge(f"<answer>{answer}", "7") == 0.0
    assert time.process_time() - began < 2.0


SIGNS = (
    r"1 2 12 0 3.5 x n \pi e i + - * / ^ ( ) { } [ ] \{ \} \frac \sqrt \cdot \le < = , ; \cup \pm \infty % ° ! | & $"
)
WORDS_AND_LAYOUT = "D|ABC|\\text{cm}|\\text{ or }|\\frac{1}{2}|\\begin{pmatrix}|\\end{pmatrix}|\\\\|...|and| is |?|:"
PIECES = st.sampled_from([*SIGNS.split(), *WORDS_AND_LAYOUT.split("|")])


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join), st.lists(PIECES, max_size=5).map("".join))
def test_no_text_raises_and_a_readable_reference_is_its_own_answer(answer: str, reference: str) -> None:
    score = tagged(answer, reference)
    assert score in (0.0, 1.0, None)
    assert (score is None) == (tagged("7", reference) is None)
