from __future__ import annotations

from grpo_core import training


def test_the_names_for_trainer_authors_are_sorted_and_complete() -> None:
    assert list(training.__all__) == sorted(training.__all__)
    assert set(training.__all__) == {name for name in vars(training) if not name.startswith("_")}
