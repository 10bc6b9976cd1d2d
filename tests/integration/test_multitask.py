"""Two tasks in one run by the real command: routing, metrics, records, report, and what is said of rows left over."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path

import pytest

import grpo_rewards_code
from grpo_rewards_code.basics.options import CodeBasicsOptions
from grpo_rewards_code.basics.source import rows as code_rows
from grpo_rewards_math.basics.options import MathBasicsOptions
from grpo_rewards_math.basics.source import rows as math_rows
from tests.integration.runs import Ran, completions_of, grpoctl, metrics_of

MODEL = Path(grpo_rewards_code.__file__).parent / "recipes" / "multitask-math-code"
FEW_ROWS = ("--set", "dataset.mix.math_basics.options.rows=40", "--set", "dataset.mix.code_basics.options.rows=40")
UNCLAIMED = {"problem": "Where is Rome?", "task": "geography", "solution": "Italy"}


def train_on_a_file(folder: Path, *more: str) -> Ran:
    """Two steps on rows of both tasks, and one row of a task that no reward is meant for."""
    math = math_rows(MathBasicsOptions(kinds=("expression",), max_value=9, style="short"), split="train", seed=0)
    code = code_rows(CodeBasicsOptions(max_steps=1, style="short"), split="train", seed=0)
    rows = [*islice(math, 4), *islice(code, 4), UNCLAIMED]
    (folder / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return grpoctl(
        folder,
        *("train", "--model", str(MODEL), "--dataset", "mixed.jsonl", "--rewards", "math_reward,code_reward"),
        *("--steps", "2", "--prompts-per-step", "9", "--completions-per-prompt", "4", "--max-completion-tokens", "96"),
        *("--learning-rate", "1e-4", "--set", "run.probe_prompts=0", "--output", "run", *more),
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    folder = tmp_path_factory.mktemp("multitask")
    return folder / "run", train_on_a_file(folder)


def test_each_reward_scores_its_own_task_only(trained: tuple[Path, Ran]) -> None:
    run, _ = trained
    for row in completions_of(run):
        task, scores = row["columns"]["task"], row["scores"]  # type: ignore[index]
        applied = {name for name, score in scores.items() if score is not None}  # type: ignore[union-attr]
        assert applied == {"math": {"math_reward"}, "code": {"code_reward"}, "geography": set()}[task]
        assert not row["failures"]
        assert (row["total"] is None) == (task == "geography")


def test_metrics_are_by_reward_and_by_task(trained: tuple[Path, Ran]) -> None:
    run, _ = trained
    for row in metrics_of(run):
        assert row["tasks/math/share"] == row["tasks/code/share"] == pytest.approx(4 / 9)
        for task, reward in (("math", "math_reward"), ("code", "code_reward")):
            assert row[f"rewards/{reward}/coverage"] == pytest.approx(4 / 9)
            assert row[f"tasks/{task}/reward_mean"] == pytest.approx(row[f"rewards/{reward}/mean"])
            assert row[f"rewards/{reward}/mixed_groups"] == 0.0
        assert row["tasks/geography/reward_mean"] is None
        assert row["reward/no_total"] == 4.0
        assert 0.0 < float(str(row["reward/mean"])) < 1.0


def test_a_task_that_no_reward_claims_is_reported_once_with_the_row(trained: tuple[Path, Ran]) -> None:
    said = " ".join((trained[1].stdout + trained[1].stderr).split())
    assert said.count("no reward is meant for task 'geography': its 1 samples train nothing") == 1
    assert '"prompt": "Where is Rome?"' in said


def test_the_report_shows_both_rewards_and_both_tasks(trained: tuple[Path, Ran]) -> None:
    run, _ = trained
    grpoctl(run.parent, "report", "run")
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>',
        (run / "report.html").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert found is not None
    data = json.loads(found[1])
    assert data["runs"][0]["rewards"] == ["math_reward", "code_reward"]
    drawn = {line["metric"] for chart in data["charts"] for line in chart["lines"]}
    assert {"rewards/math_reward/mean", "rewards/code_reward/mean"} <= drawn
    assert {"tasks/math/reward_mean", "tasks/code/reward_mean"} <= drawn


def test_the_recipe_is_planned_without_loading_anything(tmp_path: Path) -> None:
    done = grpoctl(tmp_path, "train", "--recipe", "multitask-math-code", *FEW_ROWS, "--dry-run")
    assert "math_basics" in done.stdout
    assert "code_basics" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_few_steps_of_the_recipe_run(tmp_path: Path) -> None:
    small = ("--steps", "2", "--prompts-per-step", "4", "--completions-per-prompt", "4", "--eval-rows", "8")
    quiet = ("--set", "run.probe_prompts=0", "--output", "run")
    grpoctl(tmp_path, "train", "--recipe", "multitask-math-code", *FEW_ROWS, *small, *quiet)
    first, *steps = metrics_of(tmp_path / "run")
    assert first["eval/tasks/math/prompts"] == first["eval/tasks/code/prompts"] == 4.0
    assert [row["tasks/math/share"] for row in steps] == [0.5, 0.5]
    assert all(row["rewards/format_reward/coverage"] == 1.0 for row in steps)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_recipe_learns_both_tasks(tmp_path: Path) -> None:
    """On held-out rows of each task the reward rises by more than twice its standard error."""
    grpoctl(tmp_path, "train", "--recipe", "multitask-math-code", "--output", "run")
    evaluations = [row for row in metrics_of(tmp_path / "run") if "eval/accuracy" in row]
    first, last = evaluations[0], evaluations[-1]
    for task in ("math", "code"):
        before, after = (float(str(row[f"eval/tasks/{task}/accuracy"])) for row in (first, last))
        errors = [float(str(row[f"eval/tasks/{task}/reward_se"])) for row in (first, last)]
        rise = float(str(last[f"eval/tasks/{task}/reward_mean"])) - float(str(first[f"eval/tasks/{task}/reward_mean"]))
        assert 0.15 < before < 0.8
        assert after > before
        assert rise > 2 * (errors[0] ** 2 + errors[1] ** 2) ** 0.5
