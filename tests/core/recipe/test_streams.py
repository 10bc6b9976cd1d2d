"""What a reference says of streaming, and what a run then needs."""

from __future__ import annotations

import pytest

from grpo_core.errors import RecipeError, UsageError
from grpo_core.plugins.references import parse_reference
from grpo_core.recipe.datasets import plan_dataset
from grpo_core.recipe.resolve import resolve
from grpo_core.recipe.schema import MixedDataset
from grpo_core.recipe.streams import buffer_rows
from tests.core.recipe.fakes import fake_host, recipe_of

STREAM = "hf:other/rows?streaming=true"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("hf:a/b", None),
        ("hf:a/b?streaming=false#5", None),
        ("hf:a/b?streaming=true", 1000),
        ("hf:a/b?subset=main&streaming=true&buffer=7", 7),
    ],
)
def test_the_buffer_is_a_number_of_rows(text: str, rows: int | None) -> None:
    assert buffer_rows(parse_reference(text)) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hf:a/b?streaming=yes", "streaming is true or false, not 'yes'"),
        ("hf:a/b?buffer=7", r"a buffer is for rows that are streamed(.|\n)*Add streaming=true"),
        ("hf:a/b?streaming=true&buffer=0", "buffer is a number of rows of at least 1, not '0'"),
        ("hf:a/b?streaming=true&buffer=²", "buffer is a number of rows of at least 1"),
        ("hf:a/b?streaming=true#9", r"#9 draws rows of the whole dataset(.|\n)*run.steps"),
        ("ms:a/b?streaming=true", "only Hugging Face datasets are streamed"),
    ],
)
def test_what_cannot_be_streamed_says_why(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        buffer_rows(parse_reference(text))


def test_files_and_plugins_rows_are_not_streamed() -> None:
    for use in ("rows.jsonl?streaming=true", "sums?streaming=true"):
        with pytest.raises(UsageError, match="only Hugging Face datasets are streamed"):
            plan_dataset(MixedDataset(use=use), catalog=fake_host().catalog)


def problems(**settings: object) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        resolve(recipe_of(**settings), {}, host=fake_host())
    return [str(problem) for problem in caught.value.problems]


def test_a_run_on_a_stream_needs_steps() -> None:
    assert problems(dataset=STREAM, run={"epochs": 1}) == [
        f"run.steps: required, since {STREAM} is streamed and nobody knows its length"
    ]
    plan = resolve(recipe_of(dataset=STREAM, run={"steps": 5}), {}, host=fake_host())
    assert plan.datasets[0].buffer_rows == 1000


def test_a_stream_in_a_mix_needs_a_weight() -> None:
    assert problems(dataset={"mix": [STREAM, "/a.jsonl"]}, run={"steps": 5}) == [
        "dataset.mix.rows.weight: required, since its rows are streamed and not counted"
    ]
