from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.loop.collapse import CollapseWatch, Health, climbs, fall_limit, step_noise

NUMBERS = st.floats(-10, 10)


def rewards(means: Iterable[float], *, spread: float = 0.5, **others: Sequence[float]) -> list[dict[str, object]]:
    """Rows of steps with these mean totals."""
    named = {name.replace("__", "/"): values for name, values in others.items()}
    return [
        {"step": step, "reward/mean": mean, "reward/std": spread, **{n: v[step - 1] for n, v in named.items()}}
        for step, mean in enumerate(means, start=1)
    ]


def look(rows: Iterable[dict[str, object]], watch: CollapseWatch | None = None) -> list[Health]:
    watching = watch or CollapseWatch()
    return [watching.look(int(str(row["step"])), row) for row in rows]


def begins(healths: Sequence[Health]) -> list[int]:
    """The steps at which a collapse begins."""
    return [step for step, health in enumerate(healths, start=1) if health.begins]


def test_the_noise_of_a_step_comes_from_successive_differences() -> None:
    assert step_noise(0.0, 0) == 0.0
    assert step_noise(4 * 0.1**2, 4) == pytest.approx(0.1 / math.sqrt(2))


def test_how_far_rewards_may_fall_is_the_larger_of_spread_and_noise() -> None:
    assert fall_limit(best=0.8, now=0.6, spread=0.4, noise=0.01) == pytest.approx(0.5 * 0.4)
    assert fall_limit(best=0.8, now=0.3, spread=0.4, noise=0.01) == pytest.approx(0.25 * 0.4)
    assert fall_limit(best=0.8, now=0.6, spread=0.4, noise=0.2) == pytest.approx(5.5 * 0.2 * math.sqrt(2 / 10))


def test_a_fall_is_measured_between_means_of_ten_steps() -> None:
    healths = look(rewards([1.0] * 9 + [0.5, 0.6]))
    assert healths[8].reward_fall is None
    assert healths[9].reward_fall == 0.0
    assert healths[10].reward_fall == pytest.approx(0.95 - 0.91)


def test_a_sharp_fall_of_the_rewards_is_one_collapse() -> None:
    means = [0.5] * 30 + [0.0] * 40
    format_, answer = [0.9] * 30 + [0.2] * 40, [0.1] * 70
    healths = look(rewards(means, rewards__format__mean=format_, rewards__answer__mean=answer))
    # noise: one difference of 0.5 among n; step 35: 0.5 * 5 / 10 = 0.25 = half the spread, which must be exceeded
    assert begins(healths) == [36]
    story = healths[35].begins
    assert story is not None
    assert story.startswith("reward/mean fell from 0.500 (step 30) to 0.200 (format from 0.900 to 0.480, answer from ")
    assert [health.collapsed for health in healths] == [False] * 35 + [True] * 35
    assert healths[-1].metrics == {"health/reward_fall": 0.5, "health/collapse": 1.0}


def test_a_collapse_ends_when_the_rewards_are_back_and_may_begin_again() -> None:
    healths = look(rewards([1.0] * 20 + [0.0] * 20 + [1.0] * 20 + [0.0] * 20, spread=1.0))
    assert len(begins(healths)) == 2
    assert not healths[59].collapsed


def test_slow_noisy_learning_is_no_collapse() -> None:
    dice = random.Random(0)
    means = [0.2 + 0.6 * step / 300 + dice.gauss(0, 0.05) for step in range(300)]
    assert begins(look(rewards(means))) == []


@pytest.mark.parametrize(("prompts", "group"), [(1, 4), (4, 8), (16, 8)])
def test_chance_alone_is_no_collapse(prompts: int, group: int) -> None:
    dice = random.Random(1)
    for _ in range(3):
        rows: list[dict[str, object]] = []
        for step in range(1, 301):
            chances = [dice.random() for _ in range(prompts)]
            paid = [dice.random() < chance for chance in chances for _ in range(group)]
            mean = sum(paid) / len(paid)
            rows.append({"step": step, "reward/mean": mean, "reward/std": math.sqrt(mean * (1 - mean))})
        assert begins(look(rows)) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(NUMBERS, min_size=30, max_size=80), st.floats(-5, 5), st.floats(0.1, 9))
def test_shifted_or_scaled_rewards_fall_as_far_in_their_own_unit(
    means: list[float], shift: float, scale: float
) -> None:
    plain = look(rewards(means, spread=2.0))
    moved = look(rewards([scale * mean + shift for mean in means], spread=2.0 * scale))
    for one, other in zip(plain, moved, strict=True):
        if one.reward_fall is not None:
            assert other.reward_fall == pytest.approx(scale * one.reward_fall, abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_rewards_that_only_rise_never_collapse(means: list[float]) -> None:
    healths = look(rewards(sorted(means), spread=0.01))
    assert begins(healths) == []
    assert all(not health.reward_fall for health in healths)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=20, max_size=90), st.data())
def test_a_resumed_watch_goes_on_exactly_as_an_uninterrupted_one(means: list[float], data: st.DataObject) -> None:
    rows = rewards(means, spread=0.3, trainer__grad_norm=[abs(mean) for mean in means], policy__kl=means)
    cut = data.draw(st.integers(0, len(rows)))
    whole = CollapseWatch()
    expected = look(rows, whole)[cut:]
    recorded = [json.loads(json.dumps(row)) for row in ({"step": 0, "eval/accuracy": 0.5}, *rows[:cut])]
    resumed = CollapseWatch.over(recorded)
    assert look(rows[cut:], resumed) == expected
    assert resumed.good_step == whole.good_step


def test_what_climbs_is_above_everything_before_and_three_times_as_high() -> None:
    before: list[float | None] = [1.0, 2.0] * 10
    assert climbs([*before, *[4.6] * 10], positive=True) == (1.5, 4.6)
    assert climbs([*before, *[4.4] * 10], positive=True) is None
    assert climbs([*before, *[4.4] * 10], positive=False) == (1.5, 4.4)
    assert climbs([*before[:-1], 5.0, *[4.6] * 10], positive=True) is None


def test_too_little_history_climbs_nowhere() -> None:
    assert climbs([1.0] * 19 + [9.0] * 10, positive=True) is None
    assert climbs([1.0] * 20 + [9.0] * 5 + [None] * 5, positive=True) is None
    assert climbs([1.0] * 20 + [9.0] * 6 + [None] * 4, positive=True) == (1.0, 9.0)


def climbing(**values: float | None) -> list[dict[str, object]]:
    """40 quiet steps and 10 in which these metrics are multiplied."""
    quiet: dict[str, float | None] = {"trainer/loss": 0.01, "trainer/grad_norm": 0.5, "policy/kl": 0.02}
    wild = {name.replace("__", "/"): value for name, value in values.items()}
    rows = [quiet] * 40 + [{**quiet, **wild}] * 10
    return [{"step": step, "reward/mean": 0.5, "reward/std": 0.5, **row} for step, row in enumerate(rows, start=1)]


def test_loss_gradient_norm_and_kl_climbing_together_are_a_collapse() -> None:
    healths = look(climbing(trainer__loss=0.9, trainer__grad_norm=8.0, policy__kl=2.0))
    assert begins(healths) == [46]  # most of the last ten
    assert healths[45].begins == (
        "trainer/loss from 0.01 to 0.9, trainer/grad_norm from 0.5 to 8, policy/kl from 0.02 to 2: "
        "medians of the last 10 steps against those before"
    )


@pytest.mark.parametrize(
    "values",
    [
        {"trainer__grad_norm": 8.0, "policy__kl": 2.0},
        {"trainer__loss": 0.9, "policy__kl": 2.0},
        {"trainer__loss": 0.9, "trainer__grad_norm": 8.0},
    ],
)
def test_two_of_the_three_are_not_enough(values: dict[str, float]) -> None:
    assert begins(look(climbing(**values))) == []


def test_without_a_reference_model_loss_and_gradient_norm_suffice() -> None:
    rows = climbing(trainer__loss=0.9, trainer__grad_norm=8.0)
    assert begins(look([{name: row[name] for name in row if name != "policy/kl"} for row in rows])) == [46]
    alone = [{name: row[name] for name in row if name not in ("policy/kl", "trainer/loss")} for row in rows]
    assert begins(look(alone)) == []


def test_the_last_good_step_is_before_the_fall_and_stays_there() -> None:
    watch = CollapseWatch()
    look(rewards([step / 100 for step in range(50)], spread=0.1), watch)
    assert watch.good_step == 49  # its weights earned the rewards of step 50
    rows = [{"step": 50 + n, "reward/mean": 0.0, "reward/std": 0.1} for n in range(1, 60)]
    assert [health.collapsed for health in look(rows[:3], watch)] == [False, False, True]
    look(rows[3:], watch)
    assert watch.good_step == 49


def test_a_plateau_keeps_the_step_of_its_best_rewards() -> None:
    watch = CollapseWatch()
    look(rewards([0.5] * 20 + [0.4] * 30), watch)
    assert watch.good_step == 19


def test_missing_and_infinite_numbers_are_passed_over() -> None:
    rows = rewards([0.5] * 8 + [math.nan, math.inf] + [0.5] * 10)
    rows[3]["reward/mean"] = None
    assert all(not health.collapsed for health in look(rows))
