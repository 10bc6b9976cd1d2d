"""Streams: every row once a pass, shuffled within a buffer, and the same rows after a resume, read by the real library
from a folder that looks like a repository."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grpo_core.data.feed import Feed, PromptSet
from grpo_core.data.hub import HubStream, open_stream
from grpo_core.data.prepare import Data, load_data
from grpo_core.data.prompts import Prompt
from grpo_core.data.samples import prompt_key
from grpo_core.data.stream import PromptStream, SampleStream, open_samples
from grpo_core.errors import DataError
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.types import BuildContext, Sample
from tests.core.data.fakes import component, plan_of, write_rows

CONTEXT = BuildContext(seed=0)
ROWS = 23


@pytest.fixture(autouse=True)
def offline(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def write_jsonl(folder: Path, texts: Sequence[str]) -> None:
    write_rows(folder / "train-0.jsonl", [{"query": text, "n": row} for row, text in enumerate(texts[:9])])
    write_rows(folder / "train-1.jsonl", [{"query": text, "n": row} for row, text in enumerate(texts[9:], start=9)])


def write_parquet(folder: Path, texts: Sequence[str]) -> None:
    for part, cut in enumerate((slice(0, 9), slice(9, None))):
        table = pa.table({"query": list(texts[cut]), "n": list(range(len(texts)))[cut]})
        pq.write_table(table, folder / f"train-{part}.parquet", row_group_size=4)


@pytest.fixture(params=[write_jsonl, write_parquet])
def repository(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlannedDataset:
    """23 rows in two files, as `hf:acme/rows`."""
    (tmp_path / "acme/rows").mkdir(parents=True)
    request.param(tmp_path / "acme/rows", [f"q{row}" for row in range(ROWS)])
    monkeypatch.chdir(tmp_path)
    return PlannedDataset(reference="hf:acme/rows?streaming=true", buffer_rows=5)


def render(samples: Sequence[Sample]) -> list[Prompt]:
    return [Prompt(sample=each, text=each.messages[-1].content, token_ids=(1,)) for each in samples]


def prompts_of(dataset: PlannedDataset, seed: int = 0) -> PromptStream:
    return PromptStream(open_samples(dataset, "train", CONTEXT), render, seed=seed)


def take(stream: PromptStream, count: int) -> list[str]:
    return [stream.take().text for _ in range(count)]


def all_texts(rows: int = ROWS) -> list[str]:
    return sorted(f"q{row}" for row in range(rows))


def test_rows_come_in_their_order_pass_after_pass(repository: PlannedDataset) -> None:
    rows = open_stream("acme/rows", subset=None, split=None, purpose="train")
    read = [rows.read(10) for _ in range(4)]
    assert [[row.columns["n"] for row in block] for block in read] == [
        list(range(10)),
        list(range(10, 20)),
        [20, 21, 22],
        list(range(10)),
    ]
    assert read[1][0].index == 10
    assert read[1][0].place == "hf:acme/rows train row 11"
    assert (rows.passes, rows.rows_read) == (1, 10)


def test_prompts_of_a_stream_can_come_in_the_order_of_the_file(repository: PlannedDataset) -> None:
    stream = PromptStream(open_samples(repository, "train", CONTEXT), render, seed=0, shuffles=False)
    assert take(stream, ROWS + 3) == [f"q{row}" for row in (*range(ROWS), 0, 1, 2)]


@pytest.mark.parametrize("read_before", [0, 1, 4, 8, 9, 10, 22, 23, 30])
def test_a_position_survives_json_and_another_process(repository: PlannedDataset, read_before: int) -> None:
    rows = open_stream("acme/rows", subset=None, split=None, purpose="train")
    for _ in range(read_before):
        rows.read(1)
    position = json.loads(json.dumps(rows.position()))
    other = open_stream("acme/rows", subset=None, split=None, purpose="train")
    other.seek(position)
    assert [other.read(3) for _ in range(9)] == [rows.read(3) for _ in range(9)]


def test_every_row_is_asked_once_a_pass_and_moves_no_further_than_the_buffer(repository: PlannedDataset) -> None:
    asked = take(prompts_of(repository), 2 * ROWS)
    first, second = asked[:ROWS], asked[ROWS:]
    assert sorted(first) == sorted(second) == all_texts()
    assert first != second
    assert all(abs(int(text[1:]) - place) < 5 for place, text in enumerate(first))
    assert first != [f"q{row}" for row in range(ROWS)]


def test_the_seed_decides_the_order(repository: PlannedDataset) -> None:
    assert take(prompts_of(repository, seed=1), ROWS) != take(prompts_of(repository), ROWS)
    assert take(prompts_of(repository), ROWS) == take(prompts_of(repository), ROWS)


@pytest.mark.parametrize("taken", [0, 1, 4, 5, 6, 22, 23, 24, 50])
def test_a_restored_stream_gives_the_same_next_prompts(repository: PlannedDataset, taken: int) -> None:
    stream = prompts_of(repository)
    take(stream, taken)
    state = json.loads(json.dumps(stream.state()))
    other = prompts_of(repository)
    assert other.restore(state)
    assert other.passes == stream.passes
    assert other.state() == stream.state()
    assert take(other, 40) == take(stream, 40)


def test_rows_that_changed_where_the_stream_stopped_are_noticed(repository: PlannedDataset, tmp_path: Path) -> None:
    stream = prompts_of(repository)
    take(stream, 12)
    state = stream.state()
    for file in (tmp_path / "acme/rows").glob("train-1.*"):
        file.unlink()
    write = write_parquet if list(tmp_path.glob("acme/rows/*.parquet")) else write_jsonl
    write(tmp_path / "acme/rows", [f"q{row}" if row != 12 else "other" for row in range(ROWS)])
    assert not prompts_of(repository).restore(state)


def test_dropped_rows_and_evaluation_prompts_are_never_asked(repository: PlannedDataset) -> None:
    def short(samples: Sequence[Sample]) -> list[Prompt]:
        return [prompt for prompt in render(samples) if len(prompt.text) == 3]

    samples = open_samples(repository, "train", CONTEXT)
    samples.exclude({prompt_key(sample) for sample in samples.first(12)})
    asked = take(PromptStream(samples, short, seed=0), 22)
    assert sorted(asked[:11]) == sorted(asked[11:]) == [f"q{row}" for row in range(12, 23)]


def test_the_first_samples_are_different_prompts_and_leave_the_position(repository: PlannedDataset) -> None:
    samples = open_samples(repository, "train", CONTEXT)
    samples.read_block()
    assert [sample.id for sample in samples.first(7)] == [f"train-{row:06d}" for row in range(7)]
    assert len(samples.first_block().samples) == 5
    assert [sample.columns["n"] for sample in samples.read_block().samples] == [5, 6, 7, 8, 9]
    with pytest.raises(DataError, match="has 23 different prompts, and 24 are asked for"):
        samples.first(24)


def test_a_stream_of_which_nothing_is_left_ends_with_an_error(repository: PlannedDataset) -> None:
    samples = open_samples(repository, "train", CONTEXT)
    samples.exclude({prompt_key(sample) for sample in samples.first(ROWS)})
    with pytest.raises(DataError, match=r"no row is left in a whole pass(.|\n)*preview"):
        samples.read_block()
    nothing = PromptStream(open_samples(repository, "train", CONTEXT), lambda samples: [], seed=0)
    with pytest.raises(DataError, match="no prompt of a whole pass"):
        nothing.take()


def test_a_bad_row_is_named_with_its_place(repository: PlannedDataset) -> None:
    stream = prompts_of(repository.model_copy(update={"preprocess": component("fails")}))
    with pytest.raises(DataError, match="hf:acme/rows train row 1: the preprocessor 'fails' failed"):
        stream.take()


def test_what_cannot_be_reached_or_read_on_says_so(repository: PlannedDataset) -> None:
    with pytest.raises(DataError, match=r"hf:no/body: cannot be loaded(.|\n)*the network"):
        open_stream("no/body", subset=None, split=None, purpose="train")

    class Broken:
        def load_state_dict(self, state: object) -> None:
            pass

        def __iter__(self) -> Iterator[dict[str, object]]:
            yield {"n": 1}
            raise ConnectionError("gone\naway")

    rows = HubStream(Broken(), "hf:a/b train")
    with pytest.raises(DataError, match=r"hf:a/b train: cannot be read on: gone(.|\n)*grpoctl resume"):
        rows.read(2)


def test_a_split_without_rows_is_an_error() -> None:
    class Empty(list[Any]):
        def load_state_dict(self, state: object) -> None:
            pass

    with pytest.raises(DataError, match="hf:a/b train: holds no rows"):
        HubStream(Empty(), "hf:a/b train").read(3)


def load(*sets: PlannedDataset, evaluation: PlannedDataset | None = None, **data: Any) -> Data:
    return load_data(plan_of(*sets, evaluation=evaluation, **data), CONTEXT)


def test_a_run_knows_the_first_block_and_the_columns(repository: PlannedDataset) -> None:
    data = load(repository)
    assert [sample.id for sample in data.train] == [f"train-{row:06d}" for row in range(5)]
    assert data.columns == {"n"}
    assert data.sets[0].stream is not None


def test_evaluation_rows_are_the_first_ones_and_leave_the_training(repository: PlannedDataset) -> None:
    data = load(repository, evaluation_rows=7)
    assert [sample.id for sample in data.evaluation] == [f"evaluation-{row:06d}" for row in range(7)]
    assert [sample.columns["n"] for sample in data.train] == [7, 8, 9]
    stream = data.sets[0].stream
    assert stream is not None
    asked = take(PromptStream(stream, render, seed=0), 16)
    assert sorted(asked) == sorted(f"q{row}" for row in range(7, 23))


def test_an_evaluation_dataset_may_be_streamed_when_its_rows_are_counted(
    repository: PlannedDataset, tmp_path: Path
) -> None:
    train = PlannedDataset(reference=str(write_rows(tmp_path / "rows.jsonl", [{"query": "q1"}, {"query": "x"}])))
    data = load(train, evaluation=repository, evaluation_rows=3)
    assert [sample.id for sample in data.evaluation] == [f"evaluation-{row:06d}" for row in range(3)]
    assert [sample.messages[0].content for sample in data.train] == ["x"]
    with pytest.raises(DataError, match=r"is streamed, so it has no last row(.|\n)*--eval-rows"):
        load(train, evaluation=repository)


def feed_of(data: Data) -> Feed:
    sets = [
        PromptSet(
            name=each.dataset.name,
            weight=each.weight,
            prompts=tuple(render(each.samples)),
            stream=None if each.stream is None else PromptStream(each.stream, render, seed=0),
        )
        for each in data.sets
    ]
    return Feed(sets, prompts_per_step=4, seed=0)


def test_a_stream_can_be_one_of_a_mix_and_is_resumed_there(repository: PlannedDataset, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"query": f"x{row}", "own": row} for row in range(6)])
    mix = (
        repository.model_copy(update={"name": "big", "weight": 3}),
        PlannedDataset(name="small", weight=1, reference=str(file)),
    )
    data = load(*mix)
    assert data.columns == {"dataset", "n", "own"}
    feed = feed_of(data)
    assert feed.rows is None
    steps = [feed.take(step) for step in range(1, 4)]
    state = json.loads(json.dumps(feed.state()))
    assert set(state) == {"big"}
    later = [[prompt.sample for prompt in feed.take(step)] for step in range(4, 12)]
    assert all(sorted(prompt.text[0] for prompt in step) == ["q", "q", "q", "x"] for step in steps)
    assert all(sample.columns.keys() == data.columns for step in later for sample in step)
    assert feed.epochs_before(12) == 1.0
    with pytest.raises(AssertionError, match="step 3 of a stream after 11"):
        feed.take(3)
    resumed = feed_of(load(*mix))
    assert resumed.restore(state)
    assert [[prompt.sample for prompt in resumed.take(step)] for step in range(4, 12)] == later


def test_a_feed_without_streams_has_no_state(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [{"query": f"x{row}"} for row in range(6)])
    feed = feed_of(load(PlannedDataset(reference=str(file))))
    assert feed.state() == {}
    assert feed.restore({})


def test_samples_stay_the_same_whether_streamed_or_read(repository: PlannedDataset) -> None:
    whole = load(PlannedDataset(reference="hf:acme/rows"))
    stream: SampleStream = open_samples(repository, "train", CONTEXT)
    streamed = [sample for _ in range(5) for sample in stream.read_block().samples]
    assert tuple(streamed) == whole.train
