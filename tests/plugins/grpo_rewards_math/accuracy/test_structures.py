"""Sets, tuples, intervals, equations, inequalities, words and choices.

Tables of answer, reference and the right score. An answer stands alone in an answer block, in a box or without.
"""

from __future__ import annotations

import pytest

from tests.plugins.grpo_rewards_math.accuracy.forms import boxed

SETS = [
    ("(2, 5)", "(2,5)", 1.0),
    ("(5, 2)", "(2,5)", 0.0),
    ("2, 5", "(2,5)", 1.0),
    ("5, 2", "(2,5)", 0.0),
    ("(2,5)", r"\left(2, 5\right)", 1.0),
    ("(2;5)", "(2,5)", 1.0),
    ("(2, 5, 1)", "(2,5)", 0.0),
    (r"\left(\frac{4}{2}, 5\right)", "(2,5)", 1.0),
    ("[2,5]", "(2,5)", 0.0),
    ("(2,5]", "[2,5)", 0.0),
    ("[1,6)", "[1,6)", 1.0),
    ("[1,7)", "[1,6)", 0.0),
    ("(1,6)", "[1,6)", 0.0),
    (r"\{9, 1, 4\}", r"\{1,4,9\}", 1.0),
    ("1, 4, 9", r"\{1,4,9\}", 1.0),
    (r"\{1,4\}", r"\{1,4,9\}", 0.0),
    (r"\{1,4,9,9\}", r"\{1,4,9\}", 1.0),
    (r"\{1,4,8\}", r"\{1,4,9\}", 0.0),
    ("(1,4,9)", r"\{1,4,9\}", 0.0),
    (r"\{\frac12, 3\}", r"\{3, 0.5\}", 1.0),
    (r"\{\sqrt{8}, 3\}", r"\{3, 2\sqrt{2}\}", 1.0),
    (r"x \in \{1, 2\}", r"\{1,2\}", 1.0),
    ("x = 1, 2", "1, 2", 1.0),
    (r"x=1 \text{ or } x=2", "1, 2", 1.0),
    (r"x_1=1, x_2=2", "1, 2", 1.0),
    ("6", r"\pm 6", 0.0),
    (r"\pm 6", r"\pm 6", 1.0),
    (r"6, -6", r"\pm 6", 1.0),
    (r"x = \pm 6", r"\pm 6", 1.0),
    (r"2 \pm \sqrt{3}", r"2+\sqrt{3}, 2-\sqrt{3}", 1.0),
    (r"2 + \sqrt{3}", r"2 \pm \sqrt{3}", 0.0),
    (r"\frac{1 \pm \sqrt{5}}{2}", r"\frac{1 \pm \sqrt{5}}{2}", 1.0),
    ("[40, 30, 20, 10]", "[40,30,20,10]", 1.0),
    ("[10,20]", "[20,10]", 0.0),
    (r"\emptyset", r"\varnothing", 1.0),
    (r"\{\}", r"\emptyset", 1.0),
    (r"\{0\}", r"\emptyset", 0.0),
    (r"(-\infty, 3) \cup (3, \infty)", r"(-\infty,3)\cup(3,+\infty)", 1.0),
    (r"x \ne 3", r"(-\infty,3)\cup(3,\infty)", 1.0),
    (r"(-\infty, \infty)", r"\mathbb{R}", 1.0),
    (r"\{(1,2),(3,4)\}", "(1,2), (3,4)", 1.0),
    ("(3,4), (1,2)", "(1,2), (3,4)", 1.0),
    ("(1,2)", "(1,2), (3,4)", 0.0),
    ("(2,1), (3,4)", "(1,2), (3,4)", 0.0),
    (r"\{x \mid x > 2\}", r"(2,\infty)", 1.0),
    (r"\{x \in \mathbb{R} \mid x > 2\}", r"(2,\infty)", 1.0),
    (r"x_1 \in \{1, 2\}", r"\{1,2\}", 1.0),
    (r"(x, y) \in \{(1,2)\}", r"\{(1,2)\}", 1.0),
    (r"f(x) \in [3,8)", "[3,8)", 1.0),
    # points, and names for all of a tuple
    ("(x,y)=(4,5)", "(x,y)=(4,5)", 1.0),
    ("(x,y)=(4,5)", "(4,5)", 1.0),
    ("(4,5)", "(x,y)=(4,5)", 1.0),
    ("(x,y)=(5,4)", "(4,5)", 0.0),
    ("(y,x)=(5,4)", "(x,y)=(4,5)", 1.0),
    ("(y,x)=(5,4)", "(5,4)", 1.0),
    ("x=4, y=5", "(x,y)=(4,5)", 1.0),
    ("x=5, y=4", "(x,y)=(4,5)", 0.0),
    ("(m,b)=(4,5)", "(4,5)", 1.0),
    ("(x,y,z)=(1,2,3)", "(1,2,3)", 1.0),
    ("(x,y)=(1,2,3)", "(1,2,3)", 0.0),
    ("P(4,5)", "P(4,5)", 1.0),
    ("P(4,5)", "(4,5)", 1.0),
    ("(4,5)", "P(4,5)", 1.0),
    ("P(5,4)", "(4,5)", 0.0),
    ("C(4,5)", "(4,5)", 0.0),
    # values of different names are in an order
    ("2, 1", "m=1, b=2", 0.0),
    (r"\{2, 1\}", "m=1, b=2", 0.0),
    ("1, 2", "m=1, b=2", 1.0),
    ("b=2, m=1", "m=1, b=2", 1.0),
    ("m=2, b=1", "m=1, b=2", 0.0),
    ("2, 1", r"x=1 \text{ and } y=2", 0.0),
    ("1, 2", "y=2, x=1", 1.0),
    ("2, 1", "x=1, x=2", 1.0),
    ("2, 1", "x_1=1, x_2=2", 1.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), SETS)
def test_sets_tuples_and_intervals_are_told_apart(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score
    assert boxed(answer, f"${reference}$") == score


RELATIONS = [
    ("x=13", "13", 1.0),
    (r"x = \pm 3", r"x = \pm 3", 1.0),
    (r"x = \pm 3", "x = 3, x = -3", 1.0),
    ("x = 3", r"x = \pm 3", 0.0),
    ("P = (1, 2)", "P = (1, 2)", 1.0),
    ("(1, 2)", "P = (1, 2)", 1.0),
    ("P = (2, 1)", "P = (1, 2)", 0.0),
    ("13", "x=13", 1.0),
    ("x = 14", "13", 0.0),
    ("y=13", "x=13", 0.0),
    ("13 = x", "x = 13", 1.0),
    ("5+8=13", "13", 1.0),
    ("5+9=13", "13", 0.0),
    ("f(x) = 2x", "2x", 1.0),
    (r"\angle", "13", 0.0),
    ("2x - y = 5", "y = 2x - 5", 1.0),
    ("y = 2x + 5", "y = 2x - 5", 0.0),
    ("2x-y-5=0", "4x - 2y = 10", 1.0),
    ("2x-y=5", "4x - 2y = 5", 0.0),
    ("0=0", "4x - 2y = 10", 0.0),
    ("x^2+y^2=9", "y^2 + x^2 - 9 = 0", 1.0),
    ("x^2+y^2=9", "x^2 + y^2 = 3", 0.0),
    (r"\frac{x^2}{4}+y^2=1", r"x^2 + 4y^2 = 4", 1.0),
    (r"y=\frac{1}{x}", "xy=1", 1.0),
    ("x=3, y=8", "(3, 8)", 1.0),
    ("y=8, x=3", "(3, 8)", 1.0),
    ("x=8, y=3", "(3, 8)", 0.0),
    ("x=3 and y=8", "y = 8, x = 3", 1.0),
    ("x=8, y=3", "x = 3, y = 8", 0.0),
    ("x=3", "x = 3, y = 8", 0.0),
    ("x \\geq 7", "x \\ge 7", 1.0),
    ("x ≥ 7", "x \\ge 7", 1.0),
    ("x >= 7", "x \\ge 7", 1.0),
    ("x > 7", "x \\ge 7", 0.0),
    ("x \\le 7", "x \\ge 7", 0.0),
    ("7 < x", "x > 7", 1.0),
    ("2x > 14", "x > 7", 1.0),
    ("-x < -7", "x > 7", 1.0),
    ("-x > -7", "x > 7", 0.0),
    ("x-7>0", "x > 7", 1.0),
    ("(7, \\infty)", "x > 7", 1.0),
    ("[7, \\infty)", "x > 7", 0.0),
    ("x > 7", "(7, \\infty)", 1.0),
    ("-2 < x \\le 9", "(-2, 9]", 1.0),
    ("9 \\ge x > -2", "(-2, 9]", 1.0),
    ("-2 \\le x \\le 9", "(-2, 9]", 0.0),
    ("x<1 \\text{ or } x>5", "(-\\infty,1)\\cup(5,\\infty)", 1.0),
    ("x<1 \\text{ or } x>6", "(-\\infty,1)\\cup(5,\\infty)", 0.0),
    ("x \\in [3,8)", "[3,8)", 1.0),
    ("[3,8)", "x \\in [3,8)", 1.0),
    ("3 \\le x < 8", "x \\in [3,8)", 1.0),
    ("x+y<3", "3 > x + y", 1.0),
    ("x+y<3", "x + y > 3", 0.0),
    ("a<b", "b > a", 1.0),
    ("a<b", "a > b", 0.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), RELATIONS)
def test_relations_are_the_same_where_they_hold_for_the_same_values(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score
    assert boxed(answer, f"${reference}$") == score


WORDS = [
    ("Thursday", "Thursday", 1.0),
    (r"\text{thursday}", "Thursday", 1.0),
    (r"\textbf{Thursday}", r"\text{Thursday}", 1.0),
    (r"\mathrm{Thursday}", "Thursday", 1.0),
    (r"\text{Tuesday}", "Thursday", 0.0),
    ("yadsruhT", "Thursday", 0.0),
    (r"\text{Yes}", "yes", 1.0),
    (r"\text{No}", "yes", 0.0),
    (r"\text{on}", "no", 0.0),
    ("ACBD", "ABCD", 0.0),
    ("ABCD", "ABCD", 1.0),
    (r"\text{ABCD}", "ABCD", 1.0),
    ("BA", "AB", 0.0),
    (r"\text{ba}", r"\text{ab}", 0.0),
    ("CAB", "ABC", 0.0),
    ("D", "D", 1.0),
    (r"\textbf{(D)}", "D", 1.0),
    ("(D)", "D", 1.0),
    ("D.", "D", 1.0),
    ("D)", "D", 1.0),
    (r"\mathrm{D}", "D", 1.0),
    ("(C)", "D", 0.0),
    (r"\textbf{(D)}\ 42", "D", 1.0),
    (r"\textbf{(C)}\ 42", "D", 0.0),
    ("D", r"\textbf{(D)}\ 42", 1.0),
    ("42", r"\textbf{(D)}\ 42", 1.0),
    ("41", r"\textbf{(D)}\ 42", 0.0),
    ("C", r"\textbf{(D)}\ 42", 0.0),
    (r"\text{(C) 42}", r"\textbf{(D)}\ 42", 0.0),
    (r"\text{no solution}", "No solution", 1.0),
    (r"\text{even}", "odd", 0.0),
    (r"\text{red, blue}", "blue, red", 1.0),
    ("A", "a", 1.0),
    ("x", "y", 0.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), WORDS)
def test_words_are_compared_by_their_letters_in_order(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score
