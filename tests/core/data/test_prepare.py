"""Samples of a run: ids, columns, evaluation rows that are never trained on, and errors that name the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.data.prepare import Data, load_data
from grpo_core.data.samples import LoadedSamples, load_samples
from grpo_core.errors import DataError, PluginError
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.types import BuildContext, ImageRef, Sample
from tests.core.data.fakes import component, plan_of, sums, write_rows
from tests.vl_models import encoded_picture

CONTEXT = BuildContext(seed=0)


def planned(file: Path, preprocess: str | None = None) -> PlannedDataset:
    return PlannedDataset(reference=str(file), preprocess=component(preprocess) if preprocess else None)


def load(dataset: PlannedDataset, **settings: Any) -> LoadedSamples:
    return load_samples(dataset.model_copy(update=settings), split="train", seed=0, context=CONTEXT)


def load_run(dataset: PlannedDataset, evaluation: PlannedDataset | None = None, **settings: Any) -> Data:
    return load_data(plan_of(dataset, evaluation=evaluation, **settings), CONTEXT)


def questions(samples: tuple[Sample, ...]) -> list[str]:
    return [sample.messages[-1].content for sample in samples]


def rows_of(path: Path, *contents: str, name: str = "rows.jsonl", **columns: object) -> PlannedDataset:
    return planned(write_rows(path / name, [{"query": content, **columns} for content in contents]))


def test_a_sample_is_named_by_its_split_and_row(tmp_path: Path) -> None:
    samples = load(rows_of(tmp_path, "a", "b")).samples
    assert [sample.id for sample in samples] == ["train-000000", "train-000001"]


def test_a_sampled_row_has_the_id_it_has_in_the_whole(tmp_path: Path) -> None:
    whole = rows_of(tmp_path, *map(str, range(30)))
    part = load(whole.model_copy(update={"reference": f"{whole.reference}#4"})).samples
    assert [sample.id for sample in part] == [f"train-{int(question):06d}" for question in questions(part)]


def test_columns_are_the_union_over_the_rows_and_missing_ones_are_none(tmp_path: Path) -> None:
    rows = [{"query": "a", "solution": "1"}, {"query": "b", "tests": {"kind": "call"}}]
    loaded = load(planned(write_rows(tmp_path / "rows.jsonl", rows)))
    assert loaded.columns == {"solution", "tests"}
    assert [dict(sample.columns) for sample in loaded.samples] == [
        {"solution": "1", "tests": None},
        {"tests": {"kind": "call"}, "solution": None},
    ]


def test_columns_are_renamed_before_anything_else(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"text1": "6*7?", "gold": "42"}, {"text1": "6*8?"}])
    loaded = load(planned(file), columns={"text1": "query", "gold": "solution"})
    assert questions(loaded.samples) == ["6*7?", "6*8?"]
    assert loaded.columns == {"solution"}


def test_renaming_a_column_to_a_prompt_name_chooses_it(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"query": "a", "question": "b"}])
    loaded = load(planned(file), columns={"question": "prompt"})
    assert questions(loaded.samples) == ["b"]
    assert loaded.samples[0].columns == {"query": "a"}


def test_a_rename_of_a_column_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no column golt(.|\n)*columns are gold, query"):
        load(rows_of(tmp_path, "a", gold="42"), columns={"golt": "solution"})


def test_the_system_prompt_of_the_settings_goes_to_rows_without_one(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"query": "a"}, {"query": "b", "system": "own"}])
    samples = load(planned(file), system="Be brief.\n").samples
    assert [(sample.messages[0].role, sample.messages[0].content) for sample in samples] == [
        ("system", "Be brief."),
        ("system", "own"),
    ]


def test_a_preprocessor_also_gets_the_system_prompt_and_renamed_columns(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"text": "a"}])
    loaded = load(planned(file, "upper"), columns={"text": "query"}, system="Be brief.")
    assert [message.content for message in loaded.samples[0].messages] == ["Be brief.", "A"]
    assert loaded.samples[0].columns == {"was": "a"}


def test_rows_that_the_preprocessor_drops_are_counted(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"query": "a"}, {"other": 1}, {"query": "c"}])
    loaded = load(planned(file, "upper"))
    assert [sample.id for sample in loaded.samples] == ["train-000000", "train-000002"]
    assert loaded.dropped == {"the preprocessor dropped them": 1}


def test_no_row_left_is_an_error(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"other": 1}])
    with pytest.raises(DataError, match="no row is left: 1 were read, the preprocessor dropped them"):
        load(planned(file, "upper"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": None}, "rows.jsonl line 2: column query: the prompt is missing"),
        (
            {"query": "a", "step": 3},
            r"rows.jsonl line 2: column step: the name is reserved(.|\n)*--columns step=row_step",
        ),
        ({"query": "\ud800"}, "rows.jsonl line 2: the prompt has half a character"),
        (
            {"messages": [{"role": "user", "content": " "}]},
            "rows.jsonl line 2: the last message of the prompt is empty",
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, row: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(planned(write_rows(tmp_path / "rows.jsonl", [{"query": "ok"}, row])))


@pytest.mark.parametrize(
    ("preprocess", "message"),
    [
        ("fails", r"rows.jsonl line 1: the preprocessor 'fails' failed: KeyError: 'nums' \(.*fakes.py"),
        ("leaves", r"rows.jsonl line 1: the preprocessor 'leaves' failed: it calls sys.exit\(0\) \(.*fakes.py"),
        ("gives_a_dict", "rows.jsonl line 1: the preprocessor 'gives_a_dict' gave {.*}; it must give a Sample or None"),
        ("ends_with_answer", "rows.jsonl line 1: the prompt must end with a user message; it has assistant"),
    ],
)
def test_a_preprocessor_that_breaks_the_contract_is_named_with_the_row(
    tmp_path: Path, preprocess: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load(planned(write_rows(tmp_path / "rows.jsonl", [{"query": "a"}]), preprocess))


def test_a_preprocessor_must_be_a_function(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="'not_callable' is not a preprocessor: it is 3"):
        load(planned(write_rows(tmp_path / "rows.jsonl", [{"query": "a"}]), "not_callable"))


def test_images_beside_the_data_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded_picture(1))
    sample = load(rows_of(tmp_path, "What is it?", image="a.png")).samples[0]
    assert sample.images == (ImageRef(source=str(tmp_path / "a.png")),)


def test_what_happens_to_many_rows_is_said_once_with_their_number(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]
    file = write_rows(tmp_path / "rows.jsonl", [{"messages": chat, "response": "x"}] * 3)
    assert load(planned(file)).warnings == (
        f"{file}: a final assistant turn left the prompt, and the row had a column response, which is kept (3 rows)",
    )


def test_evaluation_rows_are_taken_out_of_training(tmp_path: Path) -> None:
    data = load_run(rows_of(tmp_path, *"abcdefgh", solution="1"), evaluation_rows=3)
    assert len(data.evaluation) == 3
    assert sorted(questions(data.train) + questions(data.evaluation)) == list("abcdefgh")
    assert [sample.id for sample in data.evaluation] == [
        f"evaluation-{'abcdefgh'.index(question):06d}" for question in questions(data.evaluation)
    ]
    assert data.columns == {"solution"}
    assert not +data.dropped
    assert data.warnings == ()


def test_evaluation_that_takes_most_rows_of_a_dataset_is_warned_of(tmp_path: Path) -> None:
    dataset = rows_of(tmp_path, *"abcdef")
    message = f"{dataset.reference}: evaluation takes 4 of its 6 rows and leaves 2 to train on"
    assert load_run(dataset, evaluation_rows=4).warnings == (
        f"{message}; take fewer (--eval-rows), or give --eval-dataset",
    )
    assert load_run(dataset, evaluation_rows=3).warnings == ()


@given(contents=st.lists(st.sampled_from("abcd"), min_size=2, max_size=12), wanted=st.integers(1, 3))
def test_no_prompt_is_ever_in_both(tmp_path_factory: pytest.TempPathFactory, contents: list[str], wanted: int) -> None:
    rows = rows_of(tmp_path_factory.mktemp("rows"), *contents)
    if wanted >= len(set(contents)):
        with pytest.raises(DataError, match="cannot be taken out for evaluation"):
            load_run(rows, evaluation_rows=wanted)
        return
    data = load_run(rows, evaluation_rows=wanted)
    assert len(data.evaluation) == len(set(questions(data.evaluation))) == wanted
    assert not set(questions(data.train)) & set(questions(data.evaluation))
    left_out = data.dropped.get("their prompt is an evaluation prompt too", 0)
    assert len(data.train) + len(data.evaluation) + left_out == len(contents)


def test_training_rows_with_the_prompt_of_an_evaluation_row_are_left_out_and_counted(tmp_path: Path) -> None:
    train, evaluation = rows_of(tmp_path, *"abcab"), rows_of(tmp_path, "b", "x", name="test.jsonl")
    data = load_run(train, evaluation)
    assert questions(data.train) == ["a", "c", "a"]
    assert questions(data.evaluation) == ["b", "x"]
    assert data.dropped["their prompt is an evaluation prompt too"] == 2
    assert data.warnings == ("2 training rows are left out: their prompt is an evaluation prompt too",)


def test_evaluation_rows_are_the_first_of_an_evaluation_dataset(tmp_path: Path) -> None:
    data = load_run(rows_of(tmp_path, "a"), rows_of(tmp_path, *"xyz", name="test.jsonl"), evaluation_rows=2)
    assert questions(data.evaluation) == ["x", "y"]


def test_evaluating_on_the_training_rows_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "a", "b")
    with pytest.raises(DataError, match=r"no training row is left, all 2(.|\n)*--eval-dataset"):
        load_run(rows, rows)


def test_taking_out_more_rows_than_there_are_prompts_names_their_number(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"3 rows cannot be taken out(.|\n)*2 different prompts(.|\n)*at most 1"):
        load_run(rows_of(tmp_path, "a", "b", "b", "b"), evaluation_rows=3)


def test_a_source_makes_its_own_evaluation_rows_whatever_is_sampled_for_training() -> None:
    data = load_run(sums("acme/sums#4"), evaluation_rows=6)
    assert questions(data.train) == ["0+0?", "1+0?", "2+0?", "3+0?"]
    assert questions(data.evaluation) == [f"{1000 + n}+0?" for n in range(6)]
    assert [sample.id for sample in data.evaluation][:2] == ["evaluation-000000", "evaluation-000001"]


def test_columns_that_evaluation_rows_lack_are_none_there_and_warned_about(tmp_path: Path) -> None:
    train = rows_of(tmp_path, "a", solution="1")
    data = load_run(train, rows_of(tmp_path, "x", name="test.jsonl", task="math"))
    assert data.columns == {"solution"}
    assert data.evaluation[0].columns == {"task": "math", "solution": None}
    assert data.warnings == ("the evaluation rows have no column solution: rewards get None for it there",)


def test_without_evaluation_there_is_none(tmp_path: Path) -> None:
    data = load_run(rows_of(tmp_path, "a", "a"))
    assert data.evaluation == ()
    assert questions(data.train) == ["a", "a"]
