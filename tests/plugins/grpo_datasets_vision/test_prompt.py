"""Rows as they are on the hubs become prompts with their image; what is asked is what the document says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from grpo_core.api import BuildContext, DataError, ImageRef, Message, Sample
from grpo_datasets_vision.options import ClevrCountOptions, PictureOptions
from grpo_datasets_vision.prompt import make, make_clevr_count

PICTURE = {"bytes": b"\x89PNG encoded", "path": "CLEVR_trainA_000000.png"}
COUNT = {"image": PICTURE, "problem": "How many items are there in the image?", "solution": "<answer> 3 </answer>"}
TAGS = "Output the thinking process in <think> </think> and final answer (number) in <answer> </answer> tags."


def counted(row: Mapping[str, object], **options: str) -> Sample | None:
    return make_clevr_count(ClevrCountOptions.model_validate(options), BuildContext())(row)


def asked(row: Mapping[str, object], **options: str) -> Sample | None:
    return make(PictureOptions.model_validate(options), BuildContext())(row)


def test_a_counting_question_is_extended_by_how_to_answer() -> None:
    assert counted(COUNT) == Sample(
        messages=(Message(role="user", content=f"<image>How many items are there in the image? {TAGS}"),),
        images=(ImageRef(source=b"\x89PNG encoded"),),
        columns={"solution": "<answer> 3 </answer>"},
    )


def test_a_geometry_problem_is_asked_as_it_is() -> None:
    row = {"image": PICTURE, "problem": "What is the size of angle ABC?", "solution": "<answer> 145° </answer>"}
    sample = asked(row)
    assert sample is not None
    assert sample.messages == (Message(role="user", content="<image>What is the size of angle ABC?"),)


def test_the_original_question_of_an_open_r1_row_stays_a_column() -> None:
    row = COUNT | {"original_question": "Count.", "original_answer": "3"}
    sample = asked(row)
    assert sample is not None
    assert sample.columns == {"solution": COUNT["solution"], "original_question": "Count.", "original_answer": "3"}


def test_a_conversation_with_several_images_is_extended_in_its_last_turn() -> None:
    turns = [{"role": "user", "content": "<image> and <image>: how many?"}, {"role": "assistant", "content": "3"}]
    sample = counted({"images": ["a.png", "b.png"], "messages": turns, "solution": "3"})
    assert sample is not None
    assert sample.messages == (Message(role="user", content=f"<image> and <image>: how many? {TAGS}"),)
    assert [image.source for image in sample.images] == ["a.png", "b.png"]


@pytest.mark.parametrize(
    ("instruction", "content"), [("", "<image>How many?"), ("  Be brief. ", "<image>How many? Be brief.")]
)
def test_the_instruction_is_an_option(instruction: str, content: str) -> None:
    sample = counted(COUNT | {"problem": "How many?"}, instruction=instruction)
    assert sample is not None
    assert sample.messages[-1].content == content


def test_an_instruction_has_no_image_of_its_own() -> None:
    with pytest.raises(ValueError, match="<image> stands for an image of the row"):
        ClevrCountOptions(instruction="As in <image>.")


def test_a_row_without_its_image_is_an_error_that_says_how_to_leave_it_out() -> None:
    with pytest.raises(DataError, match="column image: the row has no image") as caught:
        asked(COUNT | {"image": None})
    assert caught.value.hint is not None
    assert "without_image=drop" in caught.value.hint


@pytest.mark.parametrize("cell", [PICTURE, b"\x89PNG encoded", "images/0.PNG"])
def test_images_under_another_name_are_not_trained_without(cell: object) -> None:
    row = {"picture": cell, "problem": "How many?", "solution": "3"}
    with pytest.raises(DataError, match="no column has an image; the columns are picture, problem, solution") as caught:
        asked(row)
    assert caught.value.hint is not None
    assert "--columns picture=image" in caught.value.hint


def test_rows_without_an_image_are_dropped_or_asked_as_text_by_choice() -> None:
    row = COUNT | {"image": None}
    assert asked(row, without_image="drop") is None
    assert counted(row, without_image="drop") is None
    kept = asked(row, without_image="keep")
    assert kept is not None
    assert kept.messages == (Message(role="user", content="How many items are there in the image?"),)
