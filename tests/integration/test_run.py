"""A whole run by the real command: on a user's own rows, reward and model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments

FAMILIES = ["llama", "qwen2", "qwen3", "gemma"]


@pytest.mark.parametrize("family", FAMILIES)
def test_any_small_model_folder_trains_on_a_users_own_rows_and_reward(tmp_path: Path, family: str) -> None:
    make_workplace(tmp_path, family=family)
    done = grpoctl(tmp_path, *train_arguments("run", "--eval-rows", "2"))
    assert "finished after 4 steps" in done.stdout
    assert "report: run/report.html" in done.stdout
    assert (tmp_path / "run/report.html").is_file()
    rows = metrics_of(tmp_path / "run")
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert all(isinstance(row["trainer/grad_norm"], float) for row in rows[1:])
    gaps = [row["sampler/gap_max"] for row in rows if "sampler/gap_max" in row]  # none where no group has a signal
    assert gaps
    assert max(gaps) < 1e-3  # type: ignore[type-var]
    assert len(completions_of(tmp_path / "run")) == 4 * 3 * 4


def test_the_final_model_loads_in_transformers_and_differs_from_the_first(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run"))
    before = AutoModelForCausalLM.from_pretrained(tmp_path / "model").state_dict()
    after = AutoModelForCausalLM.from_pretrained(tmp_path / "run/final").state_dict()
    AutoTokenizer.from_pretrained(tmp_path / "run/final")
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_every_setting_of_the_loss_runs(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    done = grpoctl(
        tmp_path,
        *train_arguments("run", "--loss", "grpo", "--beta", "0.1", "--num-iterations", "2"),
        *("--set", "trainer.minibatches=3", "--set", "objective.top_entropy_share=0.5"),
        *("--set", "objective.entropy_bonus=0.01", "--set", "objective.mask_truncated=true"),
        *("--set", "rollout.temperature=0.7", "--set", "rollout.top_p=0.9", "--set", "trainer.precision=bf16"),
    )
    assert "finished" in done.stdout
    rows = metrics_of(tmp_path / "run")
    # Where every completion is truncated, and so masked, nothing is learned; on which steps depends on the processor.
    learned = [row for row in rows if row["completions/truncated_share"] != 1.0]
    assert learned
    assert all(row["policy/kl"] is not None and float(str(row["trainer/micro_batches"])) >= 6 for row in learned)


def test_kl_in_the_reward_lowers_totals_and_needs_no_kl_in_the_loss(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("run", "--beta", "0.1", "--set", "objective.kl_in=reward"))
    assert len(metrics_of(tmp_path / "run")) == 4


def test_a_dry_run_prints_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    done = grpoctl(tmp_path, *train_arguments("run", "--dry-run"))
    assert "12" in done.stdout
    assert not (tmp_path / "run").exists()


def test_the_same_seed_gives_the_same_run_and_another_seed_another(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("one"))
    grpoctl(tmp_path, *train_arguments("two"))
    grpoctl(tmp_path, *train_arguments("three", "--seed", "4"))
    assert metrics_of(tmp_path / "one") == metrics_of(tmp_path / "two")
    assert metrics_of(tmp_path / "one") != metrics_of(tmp_path / "three")
