"""math_reward where it runs: in workers that answers may hang or kill, each at its own cost alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from grpo_core.recipe.plan import PlannedComponent, PlannedReward
from grpo_core.recipe.schema import ScoringSettings
from grpo_core.reward.scoring import Scorer
from grpo_core.types import BuildContext, Failed, Outcome
from tests.cases.scored import group_of, plan_reward

WORKERS = 8
BUDGET_S = 1.0
DIED = Failed("its worker died: killed by SIGKILL, perhaps for want of memory")


@contextmanager
def scorer_of(reward: PlannedReward, workers: int = 2) -> Iterator[Scorer]:
    made = Scorer([reward], ScoringSettings(workers=workers, max_failed_share=1.0), {"solution"}, BuildContext())
    try:
        yield made
    finally:
        made.close()


def outcomes(scorer: Scorer, texts: Sequence[str], solution: object) -> tuple[Outcome, ...]:
    step = scorer.begin(step=1, epoch=0.0, progress=0.0, max_steps=1)
    step.add(group_of(texts, {"solution": solution}))
    (scored,) = step.finish()
    (found,) = scored.outcomes.values()
    return found


@pytest.mark.slow
def test_twenty_that_hang_and_twenty_that_kill_their_worker_cost_160_others_nothing() -> None:
    target = f"{Path(__file__).with_name('drill_reward.py')}:drill"
    component = PlannedComponent.model_validate(
        {"name": "drill", "target": target, "options_model": None, "options": {}}
    )
    reward = plan_reward("math_reward").model_copy(
        update={"name": "drill", "component": component, "budget_s": BUDGET_S, "deadline_s": 60.0}
    )
    kinds = [{0: "hang", 5: "die"}.get(member % 10, member) for member in range(200)]
    texts = [f"{member} {kind}: \\boxed{{{member % 2}}}" for member, kind in enumerate(kinds)]
    expected = [{"hang": 0.0, "die": DIED}.get(str(kind), float(member % 2)) for member, kind in enumerate(kinds)]
    with scorer_of(reward, WORKERS) as scorer:
        began = time.monotonic()
        assert list(outcomes(scorer, texts, "1")) == expected
        took_s = time.monotonic() - began
    assert took_s >= 20 * BUDGET_S / WORKERS
    assert took_s < 20 * BUDGET_S / WORKERS + 30, "the budgets are shared by the workers; the rest is a slow machine"


def test_an_answer_over_its_budget_is_wrong_and_the_others_keep_their_scores() -> None:
    hanging = r"\boxed{\int_0^1 \sin(x^3) e^{\cos x} \ln(x+2) dx}"
    reward = plan_reward("math_reward").model_copy(update={"budget_s": 1.5})
    with scorer_of(reward) as scorer:
        assert outcomes(scorer, [hanging, r"\boxed{\sqrt 8}", hanging + " ", r"\boxed{3}"], r"2\sqrt{2}") == (
            0.0,
            1.0,
            0.0,
            0.0,
        )


def test_it_scores_off_the_main_thread() -> None:
    found: list[tuple[Outcome, ...]] = []
    with scorer_of(plan_reward("math_reward")) as scorer:
        thread = threading.Thread(target=lambda: found.append(outcomes(scorer, [r"\boxed{\pi/2}"], r"\frac{\pi}{2}")))
        thread.start()
        thread.join()
    assert found == [(1.0,)]


def test_a_reference_that_cannot_be_read_is_told_once_whoever_meets_it(capfd: pytest.CaptureFixture[str]) -> None:
    texts = [f"{member} \\boxed{{7}}" for member in range(16)]
    with scorer_of(plan_reward("math_reward"), workers=4) as scorer:
        for _ in range(2):
            assert outcomes(scorer, texts, r"\frac{0}{0}") == (None,) * 16
        assert outcomes(scorer, texts, "7 of 8, ?") == (None,) * 16
        assert outcomes(scorer, texts, None) == (None,) * 16
    lines = [line for line in capfd.readouterr().err.splitlines() if "cannot read" in line]
    assert lines == [
        r"math_reward cannot read the reference '\\frac{0}{0}': its rows are not judged (None).",
        "math_reward cannot read the reference '7 of 8, ?': its rows are not judged (None).",
    ]


@pytest.mark.parametrize("name", ["math", "math_accuracy", "accuracy"])
def test_other_names_lead_to_it(name: str) -> None:
    assert plan_reward(name).component.target == plan_reward("math_reward").component.target


def test_it_claims_the_task_math_and_rows_without_a_task() -> None:
    planned = plan_reward("math_reward")
    assert planned.tasks == ("math",)
    assert planned.verifies
    assert planned.pure
    assert (planned.runs_in, planned.budget_s) == ("worker", 5.0)
