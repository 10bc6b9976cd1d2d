"""Scenes: the answer is what is shown, every answer is as likely, and no scene is in training and evaluation."""

from __future__ import annotations

import io
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, cast, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from grpo_core.api import BuildContext
from grpo_datasets_vision.options import ClevrCountOptions
from grpo_datasets_vision.prompt import make_clevr_count
from grpo_datasets_vision.scenes.__main__ import main
from grpo_datasets_vision.scenes.layout import place
from grpo_datasets_vision.scenes.problem import Problem, Question, draw_problem
from grpo_datasets_vision.scenes.render import render
from grpo_datasets_vision.scenes.solid import COLOURS, MATERIALS, SHAPES, Kind, Solid
from grpo_datasets_vision.scenes.source import rows, scenes, split_of

QUESTIONS: tuple[Question, ...] = get_args(Question)
SMALL = ClevrCountOptions(pixels=56, rows=12, questions=QUESTIONS)


def meant(problem: Problem) -> int:
    """How many of the kinds a reader of the question would count."""
    words = re.findall(r"[a-z]+", problem.question.lower())
    colour, shape = (
        next((word for word in words if word in known), None) for known in (COLOURS, [f"{each}s" for each in SHAPES])
    )
    material = next((word for word in words if word in MATERIALS), None)
    return sum(
        (colour is None or kind.colour == colour)
        and (shape is None or f"{kind.shape}s" == shape)
        and (material is None or kind.material == material)
        for kind in problem.kinds
    )


@settings(deadline=None)
@given(st.sampled_from(QUESTIONS), st.integers(0, 10**6), st.integers(1, 10), st.integers(0, 9))
def test_the_answer_is_what_the_question_counts(question: Question, seed: int, low: int, more: int) -> None:
    problem = draw_problem(Random(seed), question, low=low, high=min(10, low + more), most=11)
    assert problem.answer == meant(problem)
    assert low <= problem.answer <= 10
    assert len(problem.kinds) <= max(11, problem.answer)


def test_every_answer_is_as_likely() -> None:
    random = Random(0)
    counts = Counter(draw_problem(random, "colour", low=3, high=10, most=11).answer for _ in range(4000))
    assert set(counts) == set(range(3, 11))
    assert max(counts.values()) < 1.25 * min(counts.values())


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(0, 10**6))
def test_no_solid_hides_another(count: int, seed: int) -> None:
    random = Random(seed)
    kinds = [Kind(shape=random.choice(SHAPES), colour="red", material="metal") for _ in range(count)]
    solids = place(random, kinds)
    assert Counter(solid.kind for solid in solids) == Counter(kinds)
    for place_, one in enumerate(solids):
        assert one.x - one.radius > 0
        assert one.x + one.radius < 1
        for other in solids[place_ + 1 :]:
            across, deep = abs(one.x - other.x), abs(one.y - other.y)
            assert max(across, deep) > 0.7 * (one.radius + other.radius)


def test_more_solids_than_there_is_room_for_are_refused() -> None:
    kinds = [Kind(shape="cube", colour="red", material="metal")] * 42
    with pytest.raises(ValueError, match=r"no room for 42 objects"):
        place(Random(0), kinds)


def test_each_solid_of_a_scene_is_seen_in_its_colour() -> None:
    solids = tuple(
        Solid(
            kind=Kind(shape=SHAPES[place_ % 3], colour=colour, material="rubber"),
            x=0.15 + 0.23 * (place_ % 4),
            y=0.4 + 0.4 * (place_ // 4),
            radius=0.08,
            turn=place_ % 6,
        )
        for place_, colour in enumerate(COLOURS)
    )
    picture = np.asarray(render(solids, pixels=224)).astype(float)
    for solid in solids:
        x, y = int(solid.x * 224), int((solid.y - 0.5 * solid.radius) * 224)
        seen = picture[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3).mean(0)
        wanted = np.asarray(COLOURS[solid.kind.colour], float)
        cosine = seen @ wanted / np.linalg.norm(seen) / np.linalg.norm(wanted)
        assert cosine > 0.97, (solid.kind, seen, wanted)


def test_rows_are_the_same_for_the_same_seed_and_have_the_hubs_columns() -> None:
    first, again, other = (list(rows(SMALL, split="train", seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(first) == SMALL.rows
    for row in first:
        assert set(row) == {"image", "problem", "solution"}
        assert Image.open(io.BytesIO(cast(bytes, row["image"]))).size == (56, 56)
        assert re.fullmatch(r"<answer> \d+ </answer>", str(row["solution"]))


def test_no_scene_is_in_training_and_evaluation_whatever_the_seeds() -> None:
    train = {row["image"] for seed in (1, 2) for row in rows(SMALL, split="train", seed=seed)}
    evaluation = {row["image"] for row in islice(rows(SMALL, split="evaluation", seed=1), 12)}
    assert len(train) == 24
    assert not train & evaluation
    random, counts = Random(3), Counter[str]()
    for _ in range(600):
        problem = draw_problem(random, "all", low=3, high=10, most=11)
        counts[split_of(place(random, problem.kinds))] += 1
    assert 60 < counts["evaluation"] < 145


def test_a_made_row_becomes_a_sample_with_its_image() -> None:
    row: dict[str, Any] = dict(next(iter(rows(SMALL, split="train", seed=1))))
    sample = make_clevr_count(SMALL, BuildContext(seed=0))(row)
    assert sample is not None
    assert sample.messages[-1].content.startswith("<image>How many ")
    assert sample.messages[-1].content.endswith("in <answer> </answer> tags.")
    assert len(sample.images) == 1
    assert sample.columns["solution"] == row["solution"]


def test_the_sheet_shows_scenes_and_says_what_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path / "sheet.png"), "--pixels", "56", "--columns", "3", "--rows", "2"])
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (3 * 62 - 6, 2 * 62 - 6)
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_the_picture_in_the_documentation_is_what_its_command_draws(tmp_path: Path) -> None:
    docs = Path(__file__).parents[3] / "docs"
    command = re.search(
        r"^\$ python -m grpo_datasets_vision.scenes scenes.jpg(.*)$",
        (docs / "counting.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert command is not None
    main([str(tmp_path / "scenes.jpg"), *command[1].split()])
    with Image.open(tmp_path / "scenes.jpg") as drawn, Image.open(docs / "images" / "scenes.jpg") as shown:
        assert drawn.size == shown.size
        assert np.abs(np.asarray(drawn, float) - np.asarray(shown, float)).mean() < 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sheet.notes"], "unknown file extension: .notes"),
        (["missing/sheet.png"], "No such file or directory: "),
        (["sheet.png", "--pixels", "9"], "greater than or equal to 56"),
        (["sheet.png", "--rows", "0"], "--rows 0: at least 1"),
    ],
)
def test_a_sheet_that_cannot_be_drawn_is_told(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_page_lists_every_option_of_scenes_with_its_default() -> None:
    page = (Path(__file__).parents[3] / "docs" / "counting.md").read_text("utf-8")
    for name, field in ClevrCountOptions.model_fields.items():
        if name not in ("without_image", "instruction"):  # those are of rows of any source, on the page on vision
            (row,) = (line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line)
            default = "[all]" if name == "questions" else str(field.default)
            assert default in row.split("|")[2], row


def test_options_that_contradict_are_refused() -> None:
    with pytest.raises(ValueError, match="min_count = 7 is larger than max_count = 5"):
        ClevrCountOptions(min_count=7, max_count=5)
    with pytest.raises(ValueError, match="there is no question in it"):
        ClevrCountOptions(questions=())


def test_scenes_do_not_end() -> None:
    assert sum(1 for _ in islice(scenes(SMALL, split="evaluation", seed=0), 20)) == 20
