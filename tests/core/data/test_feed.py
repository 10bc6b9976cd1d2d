"""The prompts of each step, out of one dataset or several."""

from __future__ import annotations

from collections import Counter

import pytest

from grpo_core.data.feed import Feed, PromptSet
from grpo_core.data.prompts import Prompt
from grpo_core.errors import DataError
from grpo_core.types import Message, Sample


def prompts(name: str, count: int) -> tuple[Prompt, ...]:
    """Prompts whose text says where they come from."""
    message = Message(role="user", content="?")
    return tuple(
        Prompt(sample=Sample(id=f"train-{name}-{row}", messages=(message,)), text=f"{name}{row}", token_ids=(1,))
        for row in range(count)
    )


def mixed(prompts_per_step: int = 10, **weights: float) -> Feed:
    sets = [PromptSet(name=name, weight=weight, prompts=prompts(name, 20)) for name, weight in weights.items()]
    return Feed(sets, prompts_per_step=prompts_per_step, seed=0)


def texts(feed: Feed, step: int) -> list[str]:
    return [prompt.text for prompt in feed.take(step)]


def test_one_dataset_is_walked_epoch_by_epoch() -> None:
    feed = Feed([PromptSet(name="", weight=1, prompts=prompts("", 6))], prompts_per_step=3, seed=0)
    first, second = [*texts(feed, 1), *texts(feed, 2)], [*texts(feed, 3), *texts(feed, 4)]
    assert sorted(first) == sorted(second) == list("012345")
    assert first != second
    assert [feed.epochs_before(step) for step in (1, 2, 3, 4)] == [0.0, 0.5, 1.0, 1.5]


def test_rows_can_be_asked_in_the_order_of_the_file_pass_after_pass_and_each_dataset_of_a_mix_by_itself() -> None:
    def feed(*names: str) -> Feed:
        sets = [PromptSet(name=name, weight=1, prompts=prompts(name, 3)) for name in names]
        return Feed(sets, prompts_per_step=2, seed=7, order="file")

    alone, mix = feed(""), feed("a", "b")
    assert [text for step in (1, 2, 3) for text in texts(alone, step)] == list("012012")
    assert [texts(mix, step) for step in (1, 2, 3, 4)] == [["a0", "b0"], ["a1", "b1"], ["a2", "b2"], ["a0", "b0"]]
    assert texts(mix, 3) == ["a2", "b2"], "a step is the same whatever ran before it"


def test_each_step_of_a_mix_has_its_shares() -> None:
    feed = mixed(a=0.7, b=0.3)
    for step in range(1, 9):
        assert Counter(text[0] for text in texts(feed, step)) == {"a": 7, "b": 3}


def test_each_dataset_of_a_mix_is_walked_in_epochs_of_its_own() -> None:
    feed = mixed(a=3, b=1, prompts_per_step=8)
    asked = [text for step in range(1, 11) for text in texts(feed, step)]
    assert Counter(Counter(text for text in asked if text[0] == "a").values()) == {3: 20}
    assert Counter(Counter(text for text in asked if text[0] == "b").values()) == {1: 20}


def test_an_epoch_of_a_mix_asks_as_many_prompts_as_it_has_rows() -> None:
    feed = mixed(a=3, b=1, prompts_per_step=8)
    assert feed.rows == 40
    assert feed.epochs_before(6) == 1.0


def test_steps_can_be_asked_in_any_order() -> None:
    feed = mixed(a=0.5, b=0.25, c=0.25)
    in_order = [texts(feed, step) for step in range(1, 6)]
    assert [texts(mixed(a=0.5, b=0.25, c=0.25), step) for step in range(5, 0, -1)] == in_order[::-1]


def test_a_dataset_that_is_too_small_for_its_share_is_an_error() -> None:
    with pytest.raises(DataError, match="25 of them from a, which has only 20"):
        mixed(prompts_per_step=50, a=1, b=1)
