"""Where the answer stands, and that guesses at several values are none.

Tables of answer, reference and the right score. An answer stands alone in an answer block, in a box or without.
"""

from __future__ import annotations

import time

import pytest

from grpo_rewards_math.accuracy.reward import judge
from tests.plugins.grpo_rewards_math.accuracy.forms import boxed, tagged

PLAIN_ANSWERS = [
    ("64", "64", 1.0),
    (" 64 ", "64", 1.0),
    ("64.", "64", 1.0),
    ("64.0", "64", 1.0),
    ("$64$", "64", 1.0),
    ("**64**", "64", 1.0),
    ("`64`", "64", 1.0),
    ("x = 64", "64", 1.0),
    ("= 64", "64", 1.0),
    ("−64", "-64", 1.0),
    ("- 64", "-64", 1.0),
    ("1/4", "0.25", 1.0),
    ("-1/4", "-0.25", 1.0),
    ("0.25", r"\frac{1}{4}", 1.0),
    (r"\frac{1}{4}", "0.25", 1.0),
    (r"$\frac{1}{4}$", "0.25", 1.0),
    ("25%", "0.25", 1.0),
    ("25 percent", "0.25", 1.0),
    ("1,234", "1234", 1.0),
    ("$1,234", "1234", 1.0),
    ("The answer is 64.", "64", 1.0),
    ("The final answer is: 64", "64", 1.0),
    (r"The answer is $\frac{3}{4}$.", "0.75", 1.0),
    ("The answer is 64", "65", 0.0),
    ("the answer is not 64, it is 65", "64", 0.0),
    ("the answer is not 64, it is 65", "65", 1.0),
    ("64 apples", "64", 1.0),
    ("She has 64 apples.", "64", 1.0),
    ("She gave 12 of 64 apples away.", "64", 0.0),
    ("She gave 12 of 64 apples away.", "12", 0.0),
    ("It is not 64", "64", 0.0),
    ("I don't think 64 works", "64", 0.0),
    ("unknown", "64", 0.0),
    ("", "64", 0.0),
    ("x", "64", 0.0),
    ("sixty-four", "64", 0.0),
    ("64 65", "64", 0.0),
    ("64 65", "65", 0.0),
    ("6 4", "64", 0.0),
    ("64\n65", "64", 0.0),
    ("64; 65", "64", 0.0),
    ("64/65", "64", 0.0),
    ("64|65", "64", 0.0),
    ("64-65", "64", 0.0),
    ("64 or so", "64", 0.0),
    ("答案：64", "64", 1.0),
    ("答案是64。", "64", 1.0),
    ("共有64个", "64", 1.0),
    ("６４", "64", 1.0),
    (r"First 60 + 4 = \boxed{64}", "64", 1.0),
    (r"\boxed{60} then \boxed{64}", "64", 1.0),
    (r"\boxed{60} then \boxed{64}", "60", 0.0),
    (r"\boxed{64", "64", 0.0),
    ("**Answer:** 64", "64", 1.0),
    ("Final answer: $x=64$", "64", 1.0),
    ("The answer is either 64 or 65", "64", 0.0),
    ("The answer is 64, not 65", "64", 0.0),
    ("$64$ or $65$", "64", 0.0),
    ("about 64", "64", 0.0),
    ("Option C", "C", 1.0),
    ("The correct option is C", "C", 1.0),
    ("The correct option is not C", "C", 0.0),
    ("The answer is A or C", "C", 0.0),
    ("sqrt(2)", r"\sqrt{2}", 1.0),
    ("2*sqrt(3)", r"2\sqrt{3}", 1.0),
    ("x**2", "x^2", 1.0),
    ("pi/4", r"\frac{\pi}{4}", 1.0),
    ("3^2", "9", 1.0),
    ("2(3+4)", "14", 1.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), PLAIN_ANSWERS)
def test_an_answer_block_is_read_without_a_box(answer: str, reference: str, score: float) -> None:
    assert tagged(answer, reference) == score


COMPLETIONS = [
    ("<think>5</think><answer>6</answer>", "5", 0.0),
    (r"<think>\boxed{5}</think>", "5", 0.0),
    (r"<think>\boxed{5}</think> So it is six.", "5", 0.0),
    (r"<think>\boxed{5}</think><answer>I cannot say</answer>", "5", 0.0),
    (r"<think>\boxed{5}</think><answer></answer>", "5", 0.0),
    ("<think><answer>5</answer></think>", "5", 0.0),
    ("<think><answer>5</answer></think><answer>6</answer>", "5", 0.0),
    ("<think><answer>5</answer></think><answer>6</answer>", "6", 1.0),
    (r"<think>it is \boxed{5}", "5", 0.0),
    ("<think>it is <answer>5</answer>", "5", 0.0),
    (r"<think>a</think><answer>6</answer><think>\boxed{5}", "5", 0.0),
    (r"<think>a</think><answer>6</answer><think>\boxed{5}</think>", "5", 0.0),
    (r"reasoning \boxed{5}</think><answer>6</answer>", "5", 0.0),
    (r"reasoning \boxed{5}</think><answer>6</answer>", "6", 1.0),
    (r"\boxed{6}", "6", 1.0),
    (r"so $x=\boxed{6}$.", "6", 1.0),
    ("6", "6", 0.0),
    ("The answer is 6.", "6", 0.0),
    ("<answer>6", "6", 1.0),
    ("<answer>6 or 7", "6", 0.0),
    ("<answer>5</answer><answer>6", "6", 0.0),
    ("<answer><answer>6", "6", 0.0),
    ("<think><answer>6", "6", 0.0),
    (r"<thinking>\boxed{6}</thinking>", "6", 0.0),
    (r"<thinking>\boxed{6}", "6", 0.0),
    (r"<THINK>\boxed{6}</THINK>", "6", 0.0),
    (r"<Thinking>\boxed{5}</Thinking><answer>6</answer>", "6", 1.0),
    (r"\boxed{5}</THINK>\boxed{6}", "6", 1.0),
    ("6</answer>", "6", 0.0),
    ("<answer>5</answer><answer>6</answer>", "6", 1.0),
    ("<answer>5</answer><answer>6</answer>", "5", 0.0),
    (r"<answer>6</answer> or maybe \boxed{5}", "5", 0.0),
    (r"<answer>6</answer> or maybe \boxed{5}", "6", 1.0),
    (r"\boxed{5} \boxed{6}", "5", 0.0),
    (r"\boxed{5}, \boxed{6}", "5", 0.0),
    (r"\boxed{5}, \boxed{6}", "5, 6", 0.0),
    (r"\boxed{5} and \boxed{6}", "6", 1.0),
    (r"\boxed{5 \boxed{6}}", "6", 0.0),
    (r"\boxed{\boxed{\boxed{6}}}", "6", 1.0),
    (r"\boxed{5} wait \boxed{", "5", 0.0),
    (r"\boxed{5} wait \boxed{6", "5", 0.0),
    (r"Put the answer in \boxed{}. It is \boxed{6}", "6", 1.0),
    (r"It is \boxed{6}. Put your answer in \boxed{}.", "6", 0.0),
    (r"\boxed{\frac{1}{2}} so \boxed{\frac{\sqrt{3}}{2}}", r"\frac{\sqrt{3}}{2}", 1.0),
    (r"\boxed{\{1,2\}}", r"\{1,2\}", 1.0),
    (r"\boxed 6", "6", 1.0),
    (r"\boxed {6}", "6", 1.0),
    (r"\fbox{5} then \boxed{6}", "5", 0.0),
    (r"\boxed{5} then \fbox{6}", "6", 1.0),
    ("", "6", 0.0),
    ("<answer>6</answer>" * 200, "6", 1.0),
]


@pytest.mark.parametrize(("completion", "reference", "score"), COMPLETIONS)
def test_only_the_last_answer_outside_the_thinking_counts(completion: str, reference: str, score: float) -> None:
    assert judge(completion, reference) == score


def test_a_thought_that_the_prompt_opened_holds_no_answer() -> None:
    assert judge(r"\boxed{6}", "6", thought_open=True) == 0.0
    assert judge(r"\boxed{5}</think>\boxed{6}", "6", thought_open=True) == 1.0
    assert judge(r"\boxed{5}</think>\boxed{6}", "5", thought_open=True) == 0.0


HEDGES = [
    ("4, 5", "4", 0.0),
    ("4, 5", "5", 0.0),
    ("4 or 5", "5", 0.0),
    ("4 and 5", "5", 0.0),
    (r"4 \text{ or } 5", "4", 0.0),
    (r"4 \lor 5", "4", 0.0),
    (r"4 \vee 5", "5", 0.0),
    (r"\{4, 5\}", "4", 0.0),
    ("(4, 5)", "4", 0.0),
    ("[4, 5]", "5", 0.0),
    ("4/5", "4", 0.0),
    (r"4 \quad 5", "5", 0.0),
    (r"4 \, 5", "45", 0.0),
    ("4; 5", "5", 0.0),
    ("4 | 5", "5", 0.0),
    (r"4 \mid 5", "5", 0.0),
    (r"4 \to 5", "5", 0.0),
    (r"4 \pm 1", "5", 0.0),
    (r"\pm 5", "5", 0.0),
    ("4=5", "5", 0.0),
    ("4=5", "4", 0.0),
    ("x=4=5", "5", 0.0),
    ("x=4, x=5", "5", 0.0),
    (r"4 \approx 5", "5", 0.0),
    (r"4 \ne 5", "5", 0.0),
    ("4 < 5", "5", 0.0),
    (r"x \ge 5", "5", 0.0),
    (r"5 + \text{maybe } 4", "5", 0.0),
    (r"6 \in \{5\}", "5", 0.0),
    (r"6 \in 5", "5", 0.0),
    (r"(6, 7) \in \{5\}", "5", 0.0),
    (r"2x \in \{5\}", "5", 0.0),
    (r"\{5 \mid 6\}", "6", 0.0),
    (r"\{5 | 6\}", "5", 0.0),
    (r"\{5 : 6\}", "6", 0.0),
    (r"\{6 \in A \mid 5\}", "5", 0.0),
    (r"5 \text{ is wrong}", "5", 0.0),
    (r"5 \text{ wrong}", "5", 0.0),
    (r"5 \text{ isn't right}", "5", 0.0),
    (r"5 \text{ never}", "5", 0.0),
    (r"5 \text{ is not it}", "5", 0.0),
    (r"5 \text{ cm is false}", "5", 0.0),
    (r"5 \text{ at most}", "5", 0.0),
    ("5 cm is wrong", "5", 0.0),
    ("5 wrong", "5", 0.0),
    (r"5 \text{ (or 4)}", "5", 0.0),
    (r"\text{4 or 5}", "5", 0.0),
    (r"\text{either 4 or 5}", "5", 0.0),
    ("1 2 3 4 5", "5", 0.0),
    ("0123456789", "5", 0.0),
    ("1,2,3,4,5,6,7,8,9,10", "10", 0.0),
    (r"\{1\} \cup \{5\}", "5", 0.0),
    (r"\begin{cases} 4 \\ 5 \end{cases}", "5", 0.0),
    (r"\begin{pmatrix} 4 & 5 \end{pmatrix}", "5", 0.0),
    ("A, B, C, D", "B", 0.0),
    ("A or B", "B", 0.0),
    ("AB", "B", 0.0),
    ("Monday or Tuesday", "Monday", 0.0),
    ("x", "5", 0.0),
    ("x = x", "5", 0.0),
    ("x = y", "5", 0.0),
    ("0 = 0", "y = 2x", 0.0),
    ("x = x", "y = 2x", 0.0),
    ("n", "n+1", 0.0),
    ("f(x)", "5", 0.0),
    (r"\text{answer}", "5", 0.0),
    ("?", "5", 0.0),
    (r"\infty", "5", 0.0),
    (r"\mathbb{R}", "5", 0.0),
    (r"\emptyset", "5", 0.0),
    (r"\frac{5}{0}", "5", 0.0),
    ("5_4", "4", 0.0),
    ("5^{4}", "5", 0.0),
    ("1, 2 \\text{ and } 5", "5", 0.0),
    ("1..9", "5", 0.0),
    ("1-9", "5", 0.0),
    ("27, 64, 125", "27, 64", 0.0),
    ("27", "27, 64", 0.0),
    (r"27 \text{ and } 64", "64, 27", 1.0),
    ("5, 5", "5", 1.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), HEDGES)
def test_a_guess_at_several_values_is_no_answer(answer: str, reference: str, score: float) -> None:
    assert boxed(answer, reference) == score
    assert tagged(answer, reference) == score


SENTENCES = [
    ("I doubt that it is 4", "4", 0.0),
    ("anything but 4", "4", 0.0),
    ("wrong: 4", "4", 0.0),
    ("The wrong answer is 4", "4", 0.0),
    ("The answer is false: 4", "4", 0.0),
    ("twice 4", "4", 0.0),
    ("half of 4", "4", 0.0),
    ("square root of 4", "4", 0.0),
    ("a multiple of 4", "4", 0.0),
    ("twice the answer is 4", "4", 0.0),
    ("the answer modulo 10 is 4", "4", 0.0),
    ("the last digit is 4", "4", 0.0),
    ("Some say it is 4", "4", 0.0),
    ("The answer minus one is 4", "4", 0.0),
    ("If x = 4", "4", 0.0),
    ("unless x = 4", "4", 0.0),
    ("4 squared", "4", 0.0),
    ("5 is false, 4", "4", 0.0),
    ("The answer is 3. The answer is 4 squared", "4", 0.0),
    ("I doubt it. The answer is 4", "4", 0.0),
    ("Nobody has 4", "4", 0.0),
    ("4 apples more than the answer", "4", 0.0),
    ("the answer to another question is 4", "4", 0.0),
    ("never $4$", "4", 0.0),
    ("4-", "4", 0.0),
    ("4 minus one", "4", 0.0),
    ("the answer is 4 million", "4", 0.0),
    ("Therefore, x=4.", "4", 1.0),
    ("Hence, x = 4", "4", 1.0),
    ("We get 4", "4", 1.0),
    ("4 is the answer", "4", 1.0),
    ("Therefore $4$ is the answer", "4", 1.0),
    ("= 4", "4", 1.0),
    ("<b>4</b>", "4", 1.0),
    ("**4**", "4", 1.0),
    ("*4*", "4", 1.0),
    ("<b>The answer is 4</b>", "4", 1.0),
    ("The value of the expression is 4.", "4", 1.0),
    ("Hence the number of ways is $4$.", "4", 1.0),
    ("There are 4 apples", "4", 1.0),
    ("Tom has 4 marbles left.", "4", 1.0),
    ("It is 4 apples, altogether.", "4", 1.0),
    ("Since 2+2=4, the answer is 4.", "4", 1.0),
    ("The answer is not 5, it is 4", "4", 1.0),
    ("We have $x = 4$.", "4", 1.0),
    ("Thus, 4.", "4", 1.0),
    ("The answer is negative 4", "-4", 1.0),
    ("negative 4", "4", 0.0),
    (r"\text{The answer is }4", "4", 1.0),
    (r"4\text{ is wrong}", "4", 0.0),
]


@pytest.mark.parametrize(("answer", "reference", "score"), SENTENCES)
def test_a_sentence_pays_only_where_its_form_announces_the_value(answer: str, reference: str, score: float) -> None:
    assert tagged(answer, reference) == score


def test_many_sentences_are_read_in_no_time() -> None:
    began = time.process_time()
    for piece in (
        "so, ",
        "the answer is, ",
        "the number of a b c d e f g h i j k l m ",
        "4 is the answer, ",
        "w" * 50 + ", ",
    ):
        assert tagged(piece * (1_900 // len(piece)), "4") == 0.0
    assert time.process_time() - began < 4.0
