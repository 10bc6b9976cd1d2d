"""Sets of reals and of integers in other notations: differences, lengths, turned brackets, vectors, families.

Tables of answer, reference and the right score. An answer stands alone in a box in an answer block.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.grpo_rewards_math.accuracy.forms import boxed

NOTATIONS = [
    (r"\langle 1, 2 \rangle", "(1,2)", 1.0),
    ("⟨1, 2⟩", "(1,2)", 1.0),
    (r"\left\langle 1, 2, 3 \right\rangle", r"\langle 1,2,3\rangle", 1.0),
    (r"\vec{v} = \langle 1, 2 \rangle", "(1,2)", 1.0),
    (r"\langle 2, 1 \rangle", "(1,2)", 0.0),
    ("<1, 2>", "(1,2)", 1.0),
    (r"\langle 1, 2 \rangle", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", 1.0),
    (r"\mathbb R \setminus \{0\}", r"(-\infty,0)\cup(0,\infty)", 1.0),
    (r"\mathbb{R} \backslash \{0\}", r"(-\infty,0)\cup(0,\infty)", 1.0),
    (r"\mathbb{R} - \{0\}", r"(-\infty,0)\cup(0,\infty)", 1.0),
    (r"x \in \mathbb{R} \setminus \{0\}", r"(-\infty,0)\cup(0,\infty)", 1.0),
    (r"\mathbb{R} \setminus \{0, 1\}", r"(-\infty,0)\cup(0,1)\cup(1,\infty)", 1.0),
    (r"\mathbb{R} \setminus \{1, 0\}", r"\mathbb{R} \setminus \{0, 1\}", 1.0),
    (r"\mathbb{R} \setminus \{0\}", r"\mathbb{R} \setminus \{0, 1\}", 0.0),
    (r"\mathbb{R} \setminus \{1\}", r"(-\infty,0)\cup(0,\infty)", 0.0),
    ("ℝ∖{0}", r"(-\infty,0)\cup(0,\infty)", 1.0),
    (r"x \ne 0", r"\mathbb{R} \setminus \{0\}", 1.0),
    (r"\mathbb{R} \setminus [0,1]", r"(-\infty,0)\cup(1,\infty)", 1.0),
    (r"\mathbb{R} \setminus (0,1)", r"(-\infty,0]\cup[1,\infty)", 1.0),
    (r"[0,5] \setminus \{2\}", r"[0,2)\cup(2,5]", 1.0),
    (r"\mathbb{Z} \setminus \{0\}", r"\mathbb{Z} \setminus \{0\}", 1.0),
    (r"\mathbb{N} \setminus \{0\}", r"\mathbb{Z} \setminus \{0\}", 0.0),
    (r"\{x \in \mathbb{R} \mid x \neq 0\}", r"\mathbb{R} \setminus \{0\}", 1.0),
    (r"\mathbb{R}", r"\mathbb{R} \setminus \{0\}", 0.0),
    (r"\angle A = 60^\circ", "60", 1.0),
    (r"\angle ABC = 60^\circ", r"60^\circ", 1.0),
    (r"m\angle A = 60^\circ", "60", 1.0),
    (r"\angle A=60", r"60^\circ", 1.0),
    ("∠A = 60°", "60", 1.0),
    (r"\angle 1 = 60^\circ", "60", 1.0),
    (r"\angle{BAC} = 60^\circ", "60", 1.0),
    (r"\measuredangle A = 60^\circ", "60", 1.0),
    (r"\angle A = 61^\circ", "60", 0.0),
    (r"\angle A", "60", 0.0),
    (r"\overline{AB} = 5", "5", 1.0),
    ("|AB| = 5", "5", 1.0),
    ("AB = 5", "5", 1.0),
    (r"\angle A = 60^\circ", r"\angle A = 60^\circ", 1.0),
    (r"\angle A = 60^\circ, \angle B = 30^\circ", r"\angle B = 30^\circ, \angle A = 60^\circ", 1.0),
    (r"\angle A = 30^\circ, \angle B = 60^\circ", r"\angle B = 30^\circ, \angle A = 60^\circ", 0.0),
    ("|x| < 1", "(-1,1)", 1.0),
    (r"|x| \le 1", "[-1,1]", 1.0),
    ("|x-2| < 3", "(-1,5)", 1.0),
    ("|x| > 1", r"(-\infty,-1)\cup(1,\infty)", 1.0),
    (r"|2x-4| \ge 6", r"(-\infty,-1]\cup[5,\infty)", 1.0),
    ("1 > |x|", "(-1,1)", 1.0),
    ("0 < |x-2| < 3", r"(-1,2)\cup(2,5)", 1.0),
    ("-1 < x < 1", "|x| < 1", 1.0),
    ("|x| < 2", "(-1,1)", 0.0),
    (r"|x| \le 1", "(-1,1)", 0.0),
    ("|x| < 1", "|x| < 1", 1.0),
    ("]1,6[", "(1,6)", 1.0),
    ("]1;6[", "(1,6)", 1.0),
    ("[1,6[", "[1,6)", 1.0),
    ("]1,6]", "(1,6]", 1.0),
    (r"]-\infty,1[ \cup ]3,+\infty[", r"(-\infty,1)\cup(3,\infty)", 1.0),
    ("]1,6[", "[1,6]", 0.0),
    (r"x \in ]1,6[", "(1,6)", 1.0),
    ("[[1,2],[3,4]]", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", 1.0),
    (
        r"\left[\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right]",
        r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
        1.0,
    ),
    (
        r"\left(\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right)",
        r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
        1.0,
    ),
    ("[[1,3],[2,4]]", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", 0.0),
    ("[[1,2],[3,4],[5,6]]", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", 0.0),
    (r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}", "[[1,2],[3,4]]", 1.0),
    ("[[1,2],[3,4]]", "[[1,2],[3,4]]", 1.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), NOTATIONS)
def test_other_notations_of_the_same_are_the_same(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score


LISTS = [
    (r"\text{bronze, silver, gold}", r"\text{bronze, silver, gold}", 1.0),
    (r"\text{gold, silver, bronze}", r"\text{bronze, silver, gold}", 0.0),
    (r"\text{gold}, \text{silver}, \text{bronze}", "bronze, silver, gold", 0.0),
    ("gold, silver and bronze", "bronze, silver, gold", 0.0),
    ("bronze, silver and gold", r"\text{bronze, silver, gold}", 1.0),
    (r"\{\text{gold, silver, bronze}\}", r"\text{bronze, silver, gold}", 0.0),
    (r"\{\text{blue, red}\}", r"\{\text{red, blue}\}", 1.0),
    (r"\text{blue, red}", r"\{\text{red, blue}\}", 1.0),
    (r"\text{Wednesday, Tuesday}", r"\text{Tuesday, Wednesday}", 0.0),
    (r"\text{Bob, Alice}", r"(\text{Alice, Bob})", 0.0),
    ("3, 2, 1", "1, 2, 3", 1.0),
    ("C, A", "A, C", 1.0),
    ("b, a", "a, b", 1.0),
    (r"\text{gold, silver}", r"\text{gold, silver, bronze}", 0.0),
    (r"\text{gold, gold, silver}", r"\text{gold, silver}", 0.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), LISTS)
def test_a_list_of_words_keeps_its_order(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score


FAMILIES = [
    (r"k\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"n\pi, n \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"x = n\pi, n \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"x = n\pi \text{ for } n \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"x = n\pi \text{ where } n \text{ is an integer}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"x = n\pi \quad (n \in \mathbb{Z})", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"\{n\pi : n \in \mathbb{Z}\}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"\{n\pi \mid n \in \mathbb{Z}\}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"x \in \{n\pi \mid n \in \mathbb{Z}\}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"-k\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"\pi + k\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"(k+1)\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"-\frac{\pi}{2}+n\pi, n \in \mathbb{Z}", r"\frac{\pi}{2}+k\pi, k\in\mathbb{Z}", 1.0),
    (r"\frac{(2n+1)\pi}{2}, n \in \mathbb{Z}", r"\frac{\pi}{2}+k\pi, k\in\mathbb{Z}", 1.0),
    (
        r"x = \frac{\pi}{6}+2k\pi \text{ or } x = \frac{5\pi}{6}+2k\pi, k \in \mathbb{Z}",
        r"x = \frac{5\pi}{6}+2k\pi, x=\frac{\pi}{6}+2k\pi, k \in \mathbb{Z}",
        1.0,
    ),
    (r"\pm\frac{\pi}{3}+2k\pi, k \in \mathbb{Z}", r"\frac{\pi}{3}+2k\pi, -\frac{\pi}{3}+2k\pi, k \in \mathbb{Z}", 1.0),
    (r"2k\pi, \pi+2k\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"2k+1, k \in \mathbb{Z}", r"2n-1, n\in\mathbb{Z}", 1.0),
    (r"2k+1, k \in Z", r"2n-1, n\in\mathbb{Z}", 1.0),
    (r"m\pi, m \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"2m, m \in \mathbb{Z}", r"2k, k\in\mathbb{Z}", 1.0),
    (r"n^2, n \in \mathbb{Z}", r"k^2, k\in\mathbb{Z}", 1.0),
    (r"x = \frac{k\pi}{2}, k \in ℤ", r"\frac{\pi n}{2}, n \in \mathbb{Z}", 1.0),
    (r"n\pi, \forall n \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"60^\circ + 360^\circ k, k \in \mathbb{Z}", r"60^\circ+n\cdot 360^\circ, n \in \mathbb{Z}", 1.0),
    (r"n\pi, \text{ where } n \text{ is any integer}", r"k\pi, k\in\mathbb{Z}", 1.0),
    (r"\sqrt{2} + 3k, k \in \mathbb{Z}", r"\sqrt{2}-3n, n\in\mathbb{Z}", 1.0),
    (r"2k\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"k\pi, k \in \mathbb{Z}", r"2k\pi, k\in\mathbb{Z}", 0.0),
    (r"k\pi", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"\frac{\pi}{2}+k\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"k\pi, k \in \mathbb{N}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"k\pi, k \in \mathbb{R}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"\frac{\pi}{3}+2k\pi, k \in \mathbb{Z}", r"\frac{\pi}{3}+2k\pi, -\frac{\pi}{3}+2k\pi, k \in \mathbb{Z}", 0.0),
    (r"\sqrt{2}k, k \in \mathbb{Z}", r"k, k\in\mathbb{Z}", 0.0),
    (r"k\pi + 10^{-30}, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"n\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"\mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"k\pi, k \in \mathbb{Z}, k \ne 0", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"\frac{k\pi}{1000000}, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"\frac{k\pi}{1000001}, \frac{k\pi}{999983}, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", 0.0),
    (r"5, k \in \mathbb{Z}", "5", 0.0),
    (r"n \in \mathbb{Z}", r"\mathbb{Z}", 1.0),
    (r"x \in \{1,2\}", "1,2", 1.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), FAMILIES)
def test_families_over_the_integers_are_the_same_where_they_hold_the_same_numbers(
    answer: str, reference: str, score: float
) -> None:
    assert boxed(answer, reference) == score


@settings(max_examples=40, deadline=None)
@given(
    first=st.fractions(-3, 3, max_denominator=6),
    step=st.fractions(min_value="1/6", max_value=3, max_denominator=6),
    shift=st.integers(-3, 3),
    sign=st.sampled_from([1, -1]),
    parts=st.integers(1, 3),
    name=st.sampled_from("kmnj"),
    off=st.sampled_from([0, 1]),
)
def test_a_family_is_the_same_shifted_turned_renamed_and_cut_in_parts(
    first: Fraction, step: Fraction, shift: int, sign: int, parts: int, name: str, off: int
) -> None:
    def form(a: Fraction, b: Fraction) -> str:
        return rf"({a})\pi + ({b}){name}\pi"

    cut = [form(first + (shift + each) * step + off * step / 2, sign * parts * step) for each in range(parts)]
    answer = rf"{', '.join(cut)}, {name} \in \mathbb{{Z}}"
    reference = rf"({first})\pi + ({step})k\pi, k \in \mathbb{{Z}}"
    assert boxed(answer, reference) == 1.0 - off
