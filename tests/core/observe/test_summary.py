"""What is said at the end of a run."""

from __future__ import annotations

from pathlib import Path

from grpo_core.observe.summary import closing_lines, evaluation_line
from grpo_core.types import EvaluationReport, RunOutcome


def said(before: dict[str, float], after: dict[str, float]) -> list[str]:
    first, last = (EvaluationReport(step=s, metrics={"eval/prompts": 8.0} | m) for s, m in ((0, before), (60, after)))
    return closing_lines(
        RunOutcome(status="finished", run_dir=Path("runs/a"), steps=60, first_evaluation=first, last_evaluation=last)
    )


def test_accuracy_and_reward_are_told_before_and_after() -> None:
    lines = said({"eval/accuracy": 0.25}, {"eval/accuracy": 0.75, "eval/reward_mean": 0.5})
    assert lines[:2] == [
        "finished after 60 steps",
        "greedy accuracy on 8 held-out prompts: 0.250 before, 0.750 after 60 steps (+0.500)",
    ]
    assert not any("mean reward" in line for line in lines)


def test_each_task_has_a_line_with_the_standard_error_of_its_change() -> None:
    before = {"eval/tasks/math/reward_mean": 0.5, "eval/tasks/math/reward_se": 0.03, "eval/tasks/code/reward_mean": 0.4}
    after = {"eval/tasks/math/reward_mean": 0.9, "eval/tasks/math/reward_se": 0.04, "eval/tasks/code/reward_mean": 0.6}
    assert said(before, after)[1:3] == [
        "  task math: mean reward 0.500 before, 0.900 after (+0.400 ± 0.050)",
        "  task code: mean reward 0.400 before, 0.600 after (+0.200)",
    ]


def test_an_accuracy_says_of_how_many_prompts_it_is_where_some_were_not_judged() -> None:
    metrics = {"eval/prompts": 6.0, "eval/accuracy": 0.0, "eval/judged_share": 2 / 6, "eval/reward_mean": 0.5}
    assert evaluation_line(metrics) == (
        "greedy accuracy 0.000 (0 of 2 judged; 4 not judged), reward 0.500 on 6 held-out prompts"
    )
    assert evaluation_line({**metrics, "eval/judged_share": 1.0}) == (
        "greedy accuracy 0.000, reward 0.500 on 6 held-out prompts"
    )
    judged = {"eval/judged_share": 0.25}
    lines = said({"eval/accuracy": 0.5, **judged}, {"eval/accuracy": 1.0, **judged})
    assert lines[1].startswith("greedy accuracy on the 2 judged of 8 held-out prompts: 0.500 before, 1.000 after")


def test_one_step_is_no_steps() -> None:
    lines = closing_lines(RunOutcome(status="interrupted", run_dir=Path("runs/a"), steps=1, saved_step=1))
    assert lines[0] == "interrupted after 1 step; go on with: grpoctl resume runs/a"


def test_an_interrupted_run_says_where_it_goes_on() -> None:
    def first_line(steps: int, saved_step: int) -> str:
        return closing_lines(
            RunOutcome(status="interrupted", run_dir=Path("runs/a"), steps=steps, saved_step=saved_step)
        )[0]

    assert first_line(12, 10) == "interrupted after 12 steps; go on from step 10 with: grpoctl resume runs/a"
    assert first_line(12, 0) == "interrupted after 12 steps; nothing is saved, begin again with: grpoctl resume runs/a"
    assert first_line(0, 0) == "interrupted after 0 steps; nothing is saved, begin again with: grpoctl resume runs/a"
