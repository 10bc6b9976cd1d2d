"""What each name resolves to, what is refused, and what is warned about."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from grpo_core.objective.presets import PRESETS, problems, resolve, warnings
from grpo_core.objective.sums import MEANS, MetricSums
from grpo_core.recipe.schema import AdvantageSettings, ImportanceSettings, LossName, ObjectiveSettings
from tests.core.objective.batches import LOSSES

DOCS = Path(__file__).parents[3] / "docs" / "objective.md"


def only_warning(settings: ObjectiveSettings, *, updates_per_step: int = 2) -> str:
    (text,) = warnings(settings, updates_per_step=updates_per_step)
    return text


@pytest.mark.parametrize(
    ("name", "surrogate", "ratio", "denominator", "lowest", "highest"),
    [
        ("grpo", "clip", "token", "sequence", 0.8, 1.2),
        ("dr_grpo", "clip", "token", "constant", 0.8, 1.2),
        ("dapo", "clip", "token", "token", 0.8, 1.28),
        ("cispo", "cispo", "token", "token", 0.0, 5.0),
        ("sapo", "sapo", "token", "sequence", 0.0, float("inf")),
        ("gspo", "clip", "sequence", "sequence", 0.9997, 1.0004),
    ],
)
def test_each_name_is_a_surrogate_a_ratio_level_and_a_denominator(
    name: LossName, surrogate: str, ratio: str, denominator: str, lowest: float, highest: float
) -> None:
    loss = resolve(ObjectiveSettings(loss=name))
    assert (loss.surrogate, loss.ratio, loss.denominator) == (surrogate, ratio, denominator)
    assert (loss.lowest, loss.highest) == pytest.approx((lowest, highest))


def test_bnpo_is_dapo() -> None:
    assert resolve(ObjectiveSettings(loss="bnpo")) == resolve(ObjectiveSettings(loss="dapo"))


def test_every_name_of_the_schema_has_a_preset_with_its_source() -> None:
    assert set(PRESETS) == set(get_args(LossName)) == set(LOSSES)
    assert all("arXiv" in loss.source for loss in PRESETS.values())


def test_given_settings_replace_those_of_the_preset() -> None:
    loss = resolve(ObjectiveSettings(loss="gspo", clip_low=0.1, clip_high=0.3, dual_clip=4.0))
    assert (loss.lowest, loss.highest, loss.dual_clip) == pytest.approx((0.9, 1.3, 4.0))


def test_for_cispo_clip_high_is_the_cap_of_the_ratio_itself() -> None:
    assert resolve(ObjectiveSettings(loss="cispo", clip_high=2.0)).highest == 2.0


def test_sapo_takes_its_temperatures_and_no_clip_range() -> None:
    loss = resolve(ObjectiveSettings(loss="sapo", sapo_temperature_negative=2.0, clip_low=0.1, dual_clip=3.0))
    assert (loss.temperature_positive, loss.temperature_negative) == (1.0, 2.0)
    assert (loss.lowest, loss.dual_clip) == (0.0, None)


@pytest.mark.parametrize("name", LOSSES)
def test_defaults_raise_neither_problem_nor_warning(name: LossName) -> None:
    settings = ObjectiveSettings(loss=name)
    assert problems(settings) == []
    assert warnings(settings, updates_per_step=1) == []


def test_k1_in_the_loss_is_refused_with_the_reason() -> None:
    (problem,) = problems(ObjectiveSettings(beta=0.01, kl_estimator="k1"))
    assert "expected gradient" in problem
    assert "kl_in: reward" in problem
    assert problems(ObjectiveSettings(beta=0.01, kl_estimator="k1", kl_in="reward")) == []
    assert problems(ObjectiveSettings(beta=0.0, kl_estimator="k1")) == []


@pytest.mark.parametrize("correction", ["token_mask", "sequence_mask"])
def test_a_mask_with_a_cap_of_one_is_refused(correction: str) -> None:
    importance = ImportanceSettings(correction=correction, cap=1.0)  # type: ignore[arg-type]
    (problem,) = problems(ObjectiveSettings(importance=importance))
    assert "cap above 1" in problem


def test_cispo_with_the_clip_range_of_other_losses_is_warned_about() -> None:
    assert "constant weight 0.2" in only_warning(ObjectiveSettings(loss="cispo", clip_high=0.2))
    assert "constant weight 0.2" in only_warning(ObjectiveSettings(loss="cispo", clip_high=0.2), updates_per_step=1)


def test_clip_settings_are_idle_with_one_update_a_step() -> None:
    settings = ObjectiveSettings(loss="grpo", clip_low=0.1, clip_high=0.3)
    assert only_warning(settings, updates_per_step=1).startswith("clip_low, clip_high without effect")
    assert warnings(settings, updates_per_step=2) == []


@pytest.mark.parametrize("name", ["cispo", "sapo"])
def test_dual_clip_belongs_to_the_clipped_surrogate(name: LossName) -> None:
    assert f"dual_clip has no effect with loss {name}" in only_warning(ObjectiveSettings(loss=name, dual_clip=3.0))


def test_sapo_has_no_clip_range() -> None:
    found = warnings(ObjectiveSettings(loss="sapo", clip_low=0.2, clip_high=0.2), updates_per_step=1)
    assert [text.split()[0] for text in found] == ["clip_low", "clip_high"]


def test_a_dual_clip_inside_the_clip_range_is_warned_about() -> None:
    assert "not above" in only_warning(ObjectiveSettings(loss="grpo", clip_high=0.5, dual_clip=1.4))


def test_a_lower_clip_of_one_or_more_bounds_nothing() -> None:
    assert "bounds nothing" in only_warning(ObjectiveSettings(loss="dapo", clip_low=1.0))


def test_sapo_temperatures_belong_to_sapo() -> None:
    settings = ObjectiveSettings(loss="grpo", sapo_temperature_negative=2.0)
    assert "sapo_temperature_* have no effect with loss grpo" in only_warning(settings)


def test_a_place_for_a_kl_term_that_is_off_is_warned_about() -> None:
    assert "while beta is 0" in only_warning(ObjectiveSettings(kl_in="reward"))


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_in_the_reward_only_k1_follows_the_divergence(estimator: str) -> None:
    settings = ObjectiveSettings(beta=0.01, kl_in="reward", kl_estimator=estimator)  # type: ignore[arg-type]
    assert "in the reward k1 does" in only_warning(settings)


def test_in_the_reward_the_default_estimator_needs_no_warning() -> None:
    assert warnings(ObjectiveSettings(beta=0.01, kl_in="reward"), updates_per_step=1) == []


def test_an_entropy_filter_cannot_pick_tokens_of_a_sequence_ratio() -> None:
    assert "picks no tokens" in only_warning(ObjectiveSettings(loss="gspo", top_entropy_share=0.2))


def test_an_entropy_bonus_beside_an_entropy_filter_is_warned_about() -> None:
    assert "all tokens" in only_warning(ObjectiveSettings(top_entropy_share=0.2, entropy_bonus=0.01))


def test_the_token_cap_is_idle_on_a_geometric_mean() -> None:
    settings = ObjectiveSettings(importance=ImportanceSettings(correction="sequence_mask", cap=2.0))
    assert "hardly ever acts" in only_warning(settings)


def test_dr_grpo_with_standardised_advantages_is_half_of_it() -> None:
    dr_grpo = ObjectiveSettings(loss="dr_grpo")
    (text,) = warnings(dr_grpo, updates_per_step=1, advantage=AdvantageSettings())
    assert "half of Dr. GRPO" in text
    assert warnings(dr_grpo, updates_per_step=1, advantage=AdvantageSettings(scale="none")) == []


def test_checking_settings_imports_no_torch() -> None:
    code = "import sys, grpo_core.objective.presets; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_documentation_names_every_preset_source_and_metric() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for name in LOSSES:
        assert f"`{name}`" in text
    metrics = {*MEANS, *MetricSums.none().finalise()} | {
        "policy/kl",
        "policy/ratio_max",
        "sampler/gap_max",
        "sampler/ratio_min",
        "sampler/ratio_max",
        "sampler/ess",
    }
    for metric in metrics:
        assert f"`{metric}`" in text
