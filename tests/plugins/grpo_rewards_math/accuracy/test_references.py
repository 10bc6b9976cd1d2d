"""The reference: read whole, in any usual form, or not judged at all.

Tables of answer, reference and the right score. An answer stands alone in an answer block, in a box or without.
"""

from __future__ import annotations

import pytest

from grpo_rewards_math.accuracy.reward import judge
from tests.plugins.grpo_rewards_math.accuracy.forms import boxed

BARE_REFERENCES = [
    ("3", r"3\sqrt{2}", 0.0),
    (r"3\sqrt{2}", r"3\sqrt{2}", 1.0),
    (r"\sqrt{18}", r"3\sqrt{2}", 1.0),
    (r"2\sqrt{3}", r"3\sqrt{2}", 0.0),
    ("7", r"7\pi", 0.0),
    (r"\pi \cdot 7", r"7\pi", 1.0),
    ("3", r"x \ge 3", 0.0),
    ("3", r"x > 3", 0.0),
    ("5", "(5, 7)", 0.0),
    ("7", "(5, 7)", 0.0),
    ("3", "3, 7", 0.0),
    ("7, 3", "3, 7", 1.0),
    ("-5", r"\pm 5", 0.0),
    (r"\pm 5", r"5, -5", 1.0),
    (r"-1 \text{ or } 4", r"4 \text{ or } -1", 1.0),
    ("4", r"4 \text{ or } -1", 0.0),
    ("2", "y = 2x + 1", 0.0),
    ("1", "y = 2x + 1", 0.0),
    ("y = 1 + 2x", "y = 2x + 1", 1.0),
    ("2x+1", "y = 2x + 1", 1.0),
    ("2", r"\frac{2}{3}", 0.0),
    ("2", "2^{10}", 0.0),
    ("1024", "2^{10}", 1.0),
    ("1024", "2^10", 1.0),
    ("(x+1)(x-1)", "x^2-1", 1.0),
    ("x^2+1", "x^2-1", 0.0),
    (r"\frac{x+1}{2}", r"\frac{1}{2}x + 0.5", 1.0),
    ("(3,8]", "[3, 8)", 0.0),
    (r"\left[3,8\right)", "[3, 8)", 1.0),
    (r"-\infty", r"\infty", 0.0),
    (r"+\infty", r"\infty", 1.0),
    ("100", r"\infty", 0.0),
    (r"(1,\infty)\cup(-\infty,-4)", r"(-\infty, -4) \cup (1, \infty)", 1.0),
    (r"(-\infty,-4]\cup(1,\infty)", r"(-\infty, -4) \cup (1, \infty)", 0.0),
    (r"(-\infty,-4)", r"(-\infty, -4) \cup (1, \infty)", 0.0),
    (r"\begin{pmatrix} -1 \\ 4 \end{pmatrix}", r"\begin{pmatrix} 4 \\ -1 \end{pmatrix}", 0.0),
    (r"\begin{bmatrix} 4 \\ -1 \end{bmatrix}", r"\begin{pmatrix} 4 \\ -1 \end{pmatrix}", 1.0),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & \frac{8}{2} \end{pmatrix}", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", 1.0),
    (r"\begin{pmatrix} 1 & 3 \\ 2 & 4 \end{pmatrix}", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", 0.0),
    ("4", r"\begin{pmatrix} 4 \\ -1 \end{pmatrix}", 0.0),
    (r"e^{x}", "e^x", 1.0),
    (r"\ln 2 + \ln 3", r"\ln 6", 1.0),
    (r"\ln 5", r"\ln 6", 0.0),
    (r"\log_2 8", "3", 1.0),
    (r"\frac{1}{2}\sin 2x", r"\sin x \cos x", 1.0),
    (r"\frac{1}{2}\sin x", r"\sin x \cos x", 0.0),
    (r"n(n+1)/2", r"\frac{n(n+1)}{2}", 1.0),
    (r"2^{n+1}", r"2 \cdot 2^n", 1.0),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}", 1.0),
    (r"\frac{\sqrt 3}{3}", r"\dfrac1{\sqrt3}", 1.0),
    ("a+b", "b+a", 1.0),
    ("a-b", "b-a", 0.0),
    ("ab", "ba", 1.0),
    (r"x_1+x_2", r"x_2+x_1", 1.0),
    ("a/b", r"\frac{a}{b}", 1.0),
    (r"\frac{m}{n}", "m/n", 1.0),
    ("p/q", "q/p", 0.0),
    ("a-b", "-b+a", 1.0),
    ("a - b", "-(b-a)", 1.0),
    ("a-b", "a/b", 0.0),
    ("a-b", "ab", 0.0),
    ("y = a-b", "y = -b+a", 1.0),
    ("h/k", "h/k", 1.0),
    (r"\sqrt{2+\sqrt{3}}", r"\frac{\sqrt{6}+\sqrt{2}}{2}", 1.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), BARE_REFERENCES)
def test_a_bare_reference_is_read_whole(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score


REFERENCE_STYLES = [
    ("18", "She makes 9 * 2 = $<<9*2=18>>18 every day.\n#### 18", 1.0),
    ("9", "She makes 9 * 2 = $<<9*2=18>>18 every day.\n#### 18", 0.0),
    ("1200", "#### 1,200", 1.0),
    ("-3", "x\n#### -3", 1.0),
    ("70000", "She sold it for $70,000.\n#### $70,000", 1.0),
    ("6", r"We get $2+1=3$, doubled, $\boxed{6}$.", 1.0),
    ("3", r"We get $2+1=3$, doubled, $\boxed{6}$.", 0.0),
    ("6", r"First \boxed{3}, which is wrong. So \boxed{6}", 1.0),
    ("3", r"First \boxed{3}, which is wrong. So \boxed{6}", 0.0),
    (r"\frac12", r"$\frac{1}{2}$", 1.0),
    (r"\frac12", r"\(\frac{1}{2}\)", 1.0),
    (r"\frac12", r"$$\frac{1}{2}$$", 1.0),
    (r"\frac12", r"\[\frac{1}{2}\]", 1.0),
    ("0.5", "1/2", 1.0),
    ("7", "<answer>7</answer>", 1.0),
    ("7", r"<think>8</think><answer>\boxed{7}</answer>", 1.0),
    ("7", "7.", 1.0),
    ("7", "**7**", 1.0),
    ("7", " 7\n", 1.0),
    ("7", 7, 1.0),
    ("7", 7.0, 1.0),
    ("0.1", 0.1, 1.0),
    (r"\frac{1}{10}", 0.1, 1.0),
    ("0.25", 0.25, 1.0),
    ("-7", -7, 1.0),
    ("7", -7, 0.0),
    ("0", 0.0, 1.0),
    ("123456789012345678901234567890", 123456789012345678901234567890, 1.0),
    ("1", 1e-7, 0.0),
    ("0.0000001", 1e-7, 1.0),
    ("7", ["7"], 1.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), REFERENCE_STYLES)
def test_a_reference_may_be_any_usual_form(answer: str, reference: object, score: float) -> None:
    assert boxed(answer, reference) == score


@pytest.mark.parametrize(
    "reference",
    [
        None,
        "",
        "   ",
        "$$",
        True,
        False,
        float("nan"),
        float("inf"),
        [],
        ["1", "2"],
        {"value": 1},
        b"7",
        r"\frac{0}{0}",
        r"\frac{1}{0}",
        "####",
        r"\boxed{}",
        r"\boxed{7",
        "---",
        "?",
        r"\frac{1}{",
        "(((",
        r"\unknowncommand{7}",
        "def f(x):\n    return x + 7",
        "a, b = map(int, input().split())\nprint(a + b)",
        "In March she sold 7 boxes, and in May she sold 9 of them at twice the price.",
        "9^{9^{9^{9}}}",
        "99999999!",
        "7 7",
        "7 of 8",
        "3 to 5",
    ],
)
def test_a_reference_that_cannot_be_read_is_not_judged(reference: object) -> None:
    for answer in (r"<answer>\boxed{7}</answer>", "", str(reference), f"<answer>{reference}</answer>"):
        assert judge(answer, reference) is None


@pytest.mark.parametrize("reference", ["\frac{1}{2}", "5 \times 2", "\boxed{7}", "7\x00", "\right)"])
def test_a_reference_whose_backslash_was_an_escape_is_not_judged(reference: str, caplog) -> None:
    assert boxed("7", reference) is None
    assert "double the backslash" in caplog.text


@pytest.mark.parametrize(
    "reference",
    [
        "{}",
        "0.{}",
        r"0.\overline{{{}}}",
        "1:{}",
        r"\frac{{{}}}{{3}}",
        "12 3/{}",
        "{}_2",
        "x = {}",
        r"\sqrt{{{}}}",
        "({}, 2)",
    ],
)
def test_a_reference_of_more_digits_than_can_be_read_is_not_judged(reference: str) -> None:
    assert boxed("5", reference.format("7" * 5_000)) is None
