"""A run in a few facts."""

from __future__ import annotations

from pathlib import Path

from grpo_core.report.completions import summarise
from grpo_core.report.facts import facts, setup
from tests.core.report.making import group_of, metric_rows, opened, plan_of, rising


def test_the_numbers_one_asks_for_first(tmp_path: Path) -> None:
    rows = metric_rows(
        reward__mean=rising(0.0, 1.0, 10),
        completions__length_mean=[100.0] * 10,
        completions__truncated_share=[0.25] * 10,
        time__step_s=[400.0] * 10,
        eval__accuracy=[0.25, *[None] * 8, 0.5],
        eval__prompts=[512.0, *[None] * 8, 512.0],
    )
    run = opened(tmp_path / "run", rows, completions={1: group_of(1, 0, 1)})
    found = {fact.label: (fact.value, fact.detail) for fact in facts(run, summarise(run))}
    assert found == {
        "Steps": ("10", "not finished"),
        "Greedy accuracy": ("0.25 → 0.5", "512 held-out prompts, step 1 → 10"),
        "Total reward": ("0.0556 → 0.944", "first 2 → last 2 steps"),
        "Tokens a completion": ("100 → 100", "25% cut off at the end"),
        "Completions": ("2", ""),
        "Time": ("1h 06m", "evaluations aside"),
    }


def test_a_run_with_one_step_and_one_number_has_facts_too(tmp_path: Path) -> None:
    found = {fact.label: fact.value for fact in facts(opened(tmp_path / "run"), ())}
    assert found == {"Steps": "1", "Total reward": "0.5 → 0.5", "Completions": "0", "Time": "0s"}


def test_the_plan_says_what_was_trained_on_what(tmp_path: Path) -> None:
    plan = plan_of(model="/models/tiny/", objective={"beta": 0.04})
    found = {fact.label: fact.value for fact in setup(opened(tmp_path / "run", plan=plan))}
    assert found == {
        "Model": "tiny",
        "Data": "acme/sums",
        "Rewards": "sum_reward × 1, format_reward × 0.5",
        "A step": "8 prompts × 8 completions",
        "Update": "dapo, learning rate 1e-06, beta 0.04",
    }
    lora = plan_of(trainer={"lora": {"rank": 4}})
    assert setup(opened(tmp_path / "lora", plan=lora))[-1].value == "dapo, learning rate 1e-06, beta 0, LoRA rank 4"
    adapter = plan_of(trainer={"lora": {"adapter": "/runs/a/final/adapter"}})
    assert setup(opened(tmp_path / "more", plan=adapter))[-1].value.endswith(", LoRA from /runs/a/final/adapter")
    default = plan_of(trainer={"lora": {"alpha": 8}})
    assert setup(opened(tmp_path / "default", plan=default))[-1].value.endswith(", LoRA of the default rank")
    hub = plan_of(model="Qwen/Qwen2.5-3B-Instruct")
    assert setup(opened(tmp_path / "hub", plan=hub))[0].value == "Qwen/Qwen2.5-3B-Instruct"
    assert setup(opened(tmp_path / "without")) == []
