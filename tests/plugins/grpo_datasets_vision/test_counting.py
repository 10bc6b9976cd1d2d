"""`clevr-count-tiny` learns to count what it sees: far better than the most frequent answer, and only with the right
picture."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grpo_datasets_vision.scenes.source import rows
from grpo_datasets_vision.tiny_model.task import TASK, prompt_text
from tests.integration.runs import grpoctl, metrics_of

HELD_OUT = 500
CHANCE = 1 / (TASK.max_count - TASK.min_count + 1)
SHIFT = 37
"""How many rows away the picture is that a question gets instead of its own."""


def held_out(seed: int) -> list[Mapping[str, object]]:
    """The rows that a run with this seed is evaluated on."""
    return list(islice(rows(TASK, split="evaluation", seed=seed), HELD_OUT))


def write_with_pictures_of_others(file: Path, whole: Sequence[Mapping[str, object]]) -> None:
    moved = [
        {
            "image": other["image"],
            "problem": prompt_text(str(row["problem"])),
            "solution": row["solution"],
        }
        for row, other in zip(whole, [*whole[SHIFT:], *whole[:SHIFT]], strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(moved), file)


def check_that_it_learns_to_count(folder: Path, seed: int, *settings: str) -> None:
    """Train, and compare greedy accuracy before, after, and after with the pictures of other rows."""
    grpoctl(folder, "train", "--recipe", "clevr-count-tiny", "--seed", str(seed), "--output", "run", *settings)
    accuracies = [float(str(row["eval/accuracy"])) for row in metrics_of(folder / "run") if "eval/accuracy" in row]
    assert metrics_of(folder / "run")[0]["eval/prompts"] == HELD_OUT
    whole = held_out(seed)
    majority = max(Counter(row["solution"] for row in whole).values()) / HELD_OUT
    assert majority < 1.5 * CHANCE
    assert accuracies[-1] - accuracies[0] >= 0.2
    assert accuracies[-1] > 3 * majority
    write_with_pictures_of_others(folder / "others.parquet", whole)
    blind = json.loads(grpoctl(folder, "eval", "run", "--eval-dataset", "others.parquet", "--json").stdout)
    assert abs(blind["eval/accuracy"] - CHANCE) < 0.06, "it answers without the picture"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_fourth_of_the_recipe_is_enough_to_count_far_better_than_by_chance(tmp_path: Path) -> None:
    check_that_it_learns_to_count(tmp_path, 3, "--steps", "25", "--set", "dataset.options.rows=1600")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_whole_recipe_learns_to_count(tmp_path: Path, seed: int) -> None:
    check_that_it_learns_to_count(tmp_path, seed)
