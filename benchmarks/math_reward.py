"""Completions a second that `math_reward` scores, against math-verify called one by one as TRL's accuracy_reward does.

    PYTHONPATH=. python benchmarks/math_reward.py --rows 300 --group 16 --turns 5

Two loads, half of the answers right. Unique: every completion has an answer and a reference of its own. Repeated:
groups of completions whose thoughts all differ and whose answers are three different ones, as a group produces them.
Ours goes through the scorer of a run with its workers, started before the clock is. Turns alternate between the two,
with new numbers in each, and medians are printed, in one process. Needs no network.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from fractions import Fraction

from latex2sympy2_extended import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify

from grpo_core.machine import available_cores
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_core.types import BuildContext, RolloutGroup
from tests.cases.scored import group_of, plan_reward

Row = tuple[str, list[str]]
"""A reference and the completions for it."""


def main() -> None:
    """Measure and print."""
    args = arguments()
    workers = args.workers or available_cores()
    scorer = Scorer([plan_reward("math_reward")], ScoringSettings(workers=workers), {"solution"}, BuildContext())
    try:
        score_ours(scorer, unique_rows(random.Random(0), 8 * workers))  # the workers start with the first jobs
        print(f"{workers} workers, {args.turns} turns, medians")
        for name, make in (
            ("unique", lambda dice: unique_rows(dice, args.rows)),
            (f"repeated, groups of {args.group}", lambda dice: repeated_rows(dice, args.rows, args.group)),
        ):
            report(name, make, scorer, args.turns)
    finally:
        scorer.close()


def report(name: str, make: Callable[[random.Random], list[Row]], scorer: Scorer, turns: int) -> None:
    """Completions a second of both, each turn on rows of its own."""
    serial, ours = [], []
    for turn in range(turns):
        rows = make(random.Random(f"{name} {turn}"))
        count = sum(len(completions) for _, completions in rows)
        serial.append(count / seconds(lambda rows=rows: score_serially(rows)))
        ours.append(count / seconds(lambda rows=rows: score_ours(scorer, rows)))
    ratio = statistics.median(one / other for one, other in zip(ours, serial, strict=True))
    print(
        f"{name:<24} math-verify {statistics.median(serial):8.0f}/s   math_reward {statistics.median(ours):8.0f}/s"
        f"   {ratio:.1f}x (from {min(o / s for o, s in zip(ours, serial, strict=True)):.1f}x)"
    )


def score_ours(scorer: Scorer, rows: Sequence[Row]) -> float:
    """The mean score."""
    step = scorer.begin(step=1, epoch=0.0, progress=0.0, max_steps=1)
    for index, (reference, completions) in enumerate(rows):
        group: RolloutGroup = group_of(completions, {"solution": reference}, row=index)
        step.add(group)
    totals = [total for one in step.finish() for total in one.totals]
    return statistics.fmean(total or 0.0 for total in totals)


def score_serially(rows: Sequence[Row]) -> float:
    """The mean score, each completion and its reference parsed as TRL does, timeouts included."""
    reading = LatexExtractionConfig(
        boxed_match_priority=0,
        normalization_config=NormalizationConfig(
            basic_latex=True, units=True, malformed_operators=False, nits=False, boxed="all"
        ),
        try_extract_without_anchor=False,
    )
    scores = []
    for reference, completions in rows:
        for text in completions:
            gold = parse(f"${reference}$", parsing_timeout=10)
            answer = parse(text, extraction_config=[reading], extraction_mode="first_match", parsing_timeout=10)
            scores.append(float(verify(gold, answer, timeout_seconds=5)))
    return statistics.fmean(scores)


def unique_rows(dice: random.Random, count: int) -> list[Row]:
    """One completion a row."""
    rows = []
    for index in range(count):
        right, alike, wrong = problem(dice, index)
        rows.append((right, [completion(dice, alike if index % 2 else wrong)]))
    return rows


def repeated_rows(dice: random.Random, count: int, group: int) -> list[Row]:
    """Groups of completions, three different answers in each."""
    rows = []
    for index in range(max(count // group, 1)):
        right, alike, wrong = problem(dice, index)
        answers = [(right, alike, wrong, wrong)[member % 4] for member in range(group)]
        rows.append((right, [completion(dice, answer) for answer in answers]))
    return rows


def problem(dice: random.Random, index: int) -> tuple[str, str, str]:
    """A reference, the same value written otherwise, and another value: integers, fractions, decimals, roots,
    polynomials, pairs and multiples of pi in equal parts."""
    a, b, c = dice.randint(2, 9_999), dice.randint(2, 999), dice.randint(2, 99)
    fraction = Fraction(a, b)
    lowest = rf"\frac{{{fraction.numerator}}}{{{fraction.denominator}}}"
    forms = [
        (str(a * b), f"{a * b:,}", str(a * b + c)),
        (
            lowest,
            rf"\frac{{{a}}}{{{b}}}",
            rf"\frac{{{a}}}{{{b + 1}}}",
        ),
        (f"{a / 100}", rf"\frac{{{a}}}{{100}}", f"{(a + 1) / 100}"),
        (rf"{c}\sqrt{{{b * 4 + 2}}}", rf"\sqrt{{{c * c * (b * 4 + 2)}}}", rf"{c}\sqrt{{{b * 4 + 3}}}"),
        (f"(x-{c})^2", f"x^2-{2 * c}x+{c * c}", f"x^2-{2 * c}x+{c * c + 1}"),
        (f"({a}, {b})", rf"\left({a}, {b}\right)", f"({b}, {a})"),
        (rf"\frac{{{b}\pi}}{{{c}}}", rf"{b}\pi/{c}", rf"\frac{{{b + 1}\pi}}{{{c}}}"),
    ]
    return forms[index % len(forms)]


def completion(dice: random.Random, answer: str) -> str:
    """A thought that nobody else has, and the answer."""
    thought = " ".join(dice.choice(("so", "then", "we", "add", "12", "x", "=", "now")) for _ in range(60))
    return f"<think>{thought} {dice.random()}</think>\n<answer>\\boxed{{{answer}}}</answer>"


def seconds(run: Callable[[], object]) -> float:
    """Of one call."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300, help="completions in a turn")
    parser.add_argument("--group", type=int, default=16, help="completions of a prompt in the repeated load")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--workers", type=int, default=None, help="default: the CPU cores")
    return parser.parse_args()


if __name__ == "__main__":
    main()
