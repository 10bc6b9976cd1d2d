"""The same completions scored in other ways."""

from __future__ import annotations

from typing import Any

from grpo_core.trial.findings import Finding
from grpo_core.trial.grid import score_grid
from grpo_core.trial.ways import other_ways
from tests.core.trial.making import answers, scorer


def ways(attribute: str, **changes: Any) -> dict[str, Finding]:
    samples = answers(1, 2, 3)
    written = [["1", "2", None], ["2", None, "1"], ["", "3", "1"]]
    with scorer(attribute, **changes) as made:
        before = score_grid(made, samples, written)
        return {each.name: each for each in other_ways(made, samples, written, before)}


def wrong(attribute: str, **changes: Any) -> set[str]:
    return {name for name, each in ways(attribute, **changes).items() if each.problem is not None}


def test_a_sound_reward_scores_the_same_in_all_ways() -> None:
    found = ways("contains")
    assert set(found) == {"scored again", "in another order", "off the main thread", "one at a time"}
    assert {each.problem for each in found.values()} == {None}
    assert found["scored again"].count == 7


def test_in_a_worker_it_does_too() -> None:
    assert wrong("contains", runs_in="worker") == set()


def test_a_score_that_changes_each_time_fails_all() -> None:
    assert wrong("counts_calls") == {"scored again", "in another order", "off the main thread", "one at a time"}


def test_a_score_that_depends_on_the_order_is_found_with_an_example() -> None:
    found = ways("first_of_batch")
    assert found["scored again"].problem is None
    assert found["in another order"].problem == "the same completion scores differently"
    example = found["in another order"].example
    assert example is not None
    assert (example.sample_id, example.completion, example.outcome, example.note) == (
        "train-000000",
        "1",
        1.0,
        "then 0",
    )


def test_a_reward_for_the_main_thread_alone_is_found() -> None:
    assert wrong("main_thread_only") == {"off the main thread"}


def test_one_that_fails_in_company_only_is_found() -> None:
    found = ways("empty_is_an_error")
    assert found["scored again"].problem is None
    example = found["one at a time"].example
    assert example is not None
    assert (example.sample_id, example.completion) == ("train-000002", "3")
    assert example.note == "then 1"


def test_one_that_compares_completions_is_not_asked_one_at_a_time() -> None:
    assert set(ways("group_rank", scope="group")) == {"scored again", "in another order", "off the main thread"}
    assert wrong("group_rank", scope="group") == set()
