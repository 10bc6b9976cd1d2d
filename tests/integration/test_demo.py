"""The demo learns: from at least 0.10 greedy accuracy on 512 held-out problems, by at least 0.15, for another seed too.

Of its own, 0, .ci/run asks the same of `make demo` itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.runs import grpoctl, metrics_of


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_default_recipe_learns_countdown(tmp_path: Path) -> None:
    done = grpoctl(tmp_path, "train", "--recipe", "countdown-tiny", "--seed", "1", "--output", "run")
    accuracies = [row["eval/accuracy"] for row in metrics_of(tmp_path / "run") if "eval/accuracy" in row]
    first, last = float(str(accuracies[0])), float(str(accuracies[-1]))
    assert metrics_of(tmp_path / "run")[0]["eval/prompts"] == 512
    assert first >= 0.10
    assert last - first >= 0.15
    assert f"greedy accuracy on 512 held-out prompts: {first:.3f} before, {last:.3f} after" in done.stdout
