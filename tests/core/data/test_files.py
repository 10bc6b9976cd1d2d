"""Local files: plain JSON with mixed types, CSV, Parquet, folders; every error names file and line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from grpo_core.data.files import read_path
from grpo_core.data.row import Row
from grpo_core.errors import DataError


def read(path: Path, *, split: str | None = None, purpose: str = "train") -> list[Row]:
    return read_path(path, split=split, purpose=purpose)


def columns(path: Path) -> list[dict[str, object]]:
    return [dict(row.columns) for row in read(path)]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def test_json_lines_keep_their_types_even_where_a_column_mixes_them(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"query":"a","solution":42}\n{"query":"b","solution":"x+1"}\n')
    assert columns(file) == [{"query": "a", "solution": 42}, {"query": "b", "solution": "x+1"}]


def test_rows_say_which_line_they_are_and_blank_lines_count_but_are_no_rows(tmp_path: Path) -> None:
    rows = read(write(tmp_path / "a.jsonl", '\n{"q": 1}\n  \r\n{"q": 2}\n\n'))
    assert [(row.index, row.place, row.folder) for row in rows] == [
        (0, "a.jsonl line 2", tmp_path),
        (1, "a.jsonl line 4", tmp_path),
    ]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path, name: str) -> None:
    text = 'query\n"1"\n' if name == "a.csv" else '{"query": "1"}'
    assert columns(write(tmp_path / name, "\ufeff" + text)) == [{"query": "1"}]


@pytest.mark.parametrize(
    "text",
    ['[{"q": 1}, {"q": "x"}]', '{"q": 1}\n{"q": "x"}\n', '[\n {"q": 1},\n {"q": "x"}\n]\n'],
)
def test_a_json_file_holds_a_list_or_lines(tmp_path: Path, text: str) -> None:
    assert columns(write(tmp_path / "a.json", text)) == [{"q": 1}, {"q": "x"}]


@pytest.mark.parametrize("name", ["metadata.jsonl", "metadata.csv"])
def test_the_metadata_of_a_folder_of_images_name_its_images(tmp_path: Path, name: str) -> None:
    rows = {
        "metadata.jsonl": '{"file_name": "0.png", "left_file_name": "l.png", "query": "What?"}\n',
        "metadata.csv": "file_name,left_file_name,query\n0.png,l.png,What?\n",
    }
    write(tmp_path / "train" / name, rows[name])
    [row] = read(tmp_path)
    assert dict(row.columns) == {"image": "0.png", "left": "l.png", "query": "What?"}
    assert row.folder == tmp_path / "train"


def test_several_images_of_a_row_are_named_in_metadata_and_no_column_is_lost(tmp_path: Path) -> None:
    rows = (
        '{"file_names": ["0.png", "1.png"]}',
        '{"image": "a", "file_name": "b"}',
        '{"file_name": "a", "image_file_name": "b"}',
    )
    assert columns(write(tmp_path / "metadata.jsonl", "\n".join(rows))) == [
        {"images": ["0.png", "1.png"]},
        {"image": "a", "file_name": "b"},
        {"image": "a", "image_file_name": "b"},
    ]
    assert columns(write(tmp_path / "rows.jsonl", '{"file_name": "0.png"}')) == [{"file_name": "0.png"}]


def test_a_folder_of_images_alone_is_told_what_to_put_beside_them(tmp_path: Path) -> None:
    write(tmp_path / "0.PNG", "")
    with pytest.raises(DataError, match=r"holds no file that can be read(.|\n)*Put a metadata.jsonl beside the images"):
        read(tmp_path)


def test_a_json_file_may_hold_a_single_row(tmp_path: Path) -> None:
    assert columns(write(tmp_path / "a.json", '{"q": 1}')) == [{"q": 1}]


def test_texts_that_look_like_dates_or_schemas_stay_texts(tmp_path: Path) -> None:
    line = '{"query": "### list: id, when: datetime", "solution": "2024-01-01"}'
    expected = [{"query": "### list: id, when: datetime", "solution": "2024-01-01"}]
    assert columns(write(tmp_path / "a.jsonl", line)) == expected


def test_unusual_line_separators_inside_a_text_do_not_split_it(tmp_path: Path) -> None:
    assert columns(write(tmp_path / "a.jsonl", '{"q": "a\u2028b\x85c"}\n')) == [{"q": "a\u2028b\x85c"}]
    assert columns(write(tmp_path / "a.csv", 'q,r\n"a\u2028b\nc",d\n')) == [{"q": "a\u2028b\nc", "r": "d"}]


def test_csv_cells_are_texts(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "query,solution\n6*7?,42\n\n6*8?,\n")
    assert columns(file) == [{"query": "6*7?", "solution": "42"}, {"query": "6*8?", "solution": ""}]


def test_a_csv_cell_may_be_long(tmp_path: Path) -> None:
    assert columns(write(tmp_path / "a.csv", f"q\n{'x' * 200_000}\n")) == [{"q": "x" * 200_000}]


def test_parquet_keeps_lists_structs_and_none(tmp_path: Path) -> None:
    rows = [{"nums": [1, 2], "meta": {"a": 1}, "x": None}, {"nums": [3], "meta": None, "x": "y"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert columns(tmp_path / "a.parquet") == rows
    assert read(tmp_path / "a.parquet")[1].place == "a.parquet row 2"


def test_a_folder_is_all_its_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path / "b.csv", "q\n3\n")
    write(tmp_path / "a.jsonl", '{"q": 1}\n{"q": 2}\n')
    write(tmp_path / "README.md", "not rows")
    write(tmp_path / ".hidden" / "c.jsonl", "{}")
    rows = read(tmp_path)
    assert [(row.index, row.columns["q"]) for row in rows] == [(0, 1), (1, 2), (2, "3")]
    assert rows[2].place == "b.csv line 2"


def test_the_test_files_of_a_folder_are_not_trained_on(tmp_path: Path) -> None:
    write(tmp_path / "train-1.jsonl", '{"q": 1}')
    write(tmp_path / "train-2.jsonl", '{"q": 2}')
    write(tmp_path / "test.jsonl", '{"q": 3}')
    assert [row.columns["q"] for row in read(tmp_path)] == [1, 2]
    assert [row.columns["q"] for row in read(tmp_path, split="test", purpose="evaluation")] == [3]
    with pytest.raises(DataError, match="has several splits: test, train"):
        read(tmp_path, purpose="evaluation")


def test_a_folder_written_by_save_to_disk_says_what_to_do(tmp_path: Path) -> None:
    write(tmp_path / "state.json", "{}")
    write(tmp_path / "dataset_info.json", "{}")
    with pytest.raises(DataError, match=r"save_to_disk wrote(.|\n)*to_parquet"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"q": 1}\n{"q": \n', r"a\.jsonl line 2: is not valid JSON: Expecting value at character 8"),
        ("a.jsonl", '["a", "1"]\n', r"a\.jsonl line 1: a row is a JSON object with column names, not list"),
        ("a.jsonl", f'{{"q": {"9" * 5000}}}', r"a\.jsonl line 1: is not valid JSON: Exceeds the limit"),
        ("a.jsonl", "", r"a\.jsonl: holds no rows"),
        ("a.jsonl", "\n \n", r"a\.jsonl: holds no rows"),
        ("a.json", "", r"a\.json: holds no rows"),
        ("a.json", "[]", r"a\.json: holds no rows"),
        ("a.json", '[{"q": 1}, 2]', r"a\.json row 2: a row is a JSON object with column names, not int"),
        ("a.json", "[1,", r"a\.json: is not valid JSON"),
        ("a.json", f'{{"q": {"9" * 5000}}}', r"a\.json: is not valid JSON: Exceeds the limit"),
        ("a.csv", "", r"a\.csv: holds no rows"),
        ("a.csv", "q,r\n", r"a\.csv: holds no rows"),
        ("a.csv", "q,q\n1,2\n", r"a\.csv line 1: every column needs a name of its own"),
        ("a.csv", "q,\n1,2\n", r"a\.csv line 1: every column needs a name of its own"),
        ("a.csv", "q,r\n1,2\n1,2,3\n", r"a\.csv line 3: 3 cells, but 2 columns"),
        ("a.csv", 'q\n"1" 2\n', r"a\.csv line 2: is not valid CSV"),
        ("a.parquet", "no parquet", r"a\.parquet: is not valid Parquet"),
        ("a.txt", "x", r"a\.txt: \.txt is no kind of file that can be read(.|\n)*\.jsonl, "),
        ("rows", "x", r"rows: a name without ending is no kind of file"),
    ],
)
def test_a_file_that_cannot_be_read_names_the_file_and_the_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read(write(tmp_path / name, text))


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_a_file_in_another_encoding_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes('{"q": "Größe"}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"is not UTF-8 text(.|\n)*Save the file as UTF-8"):
        read(tmp_path / name)


def test_a_missing_file_and_an_empty_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file or folder"):
        read(tmp_path / "gone.jsonl")
    with pytest.raises(DataError, match="holds no file that can be read"):
        read(tmp_path)


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"query": "六乘七 Größe 3²"}\n')
    code = "import sys; from pathlib import Path; from grpo_core.data.files import read_path; "
    code += "print(ascii(read_path(Path(sys.argv[1]), split=None, purpose='train')[0].columns['query']))"
    env = {**os.environ, "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code, str(file)], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ascii("六乘七 Größe 3²")


def test_what_is_no_regular_file_is_named_and_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    for name in ("a.json", "a.csv", "a.parquet", "a.jsonl"):
        (tmp_path / name).symlink_to("/dev/zero")
        with pytest.raises(DataError, match=f"{name}: cannot be read: it is a device, not a file"):
            read_path(tmp_path / name, split=None, purpose="train")
    with pytest.raises(DataError, match=r"rows.jsonl: cannot be read: it is a FIFO, not a file"):
        read_path(tmp_path / "rows.jsonl", split=None, purpose="train")
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    with pytest.raises(DataError, match=r"circle.csv: cannot be read: Too many levels of symbolic links"):
        read_path(tmp_path / "circle.csv", split=None, purpose="train")


def test_a_fifo_among_the_files_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"query": "1"}\n')
    (tmp_path / "circle").symlink_to(tmp_path)
    assert len(read_path(tmp_path, split=None, purpose="train")) == 1
    os.mkfifo(tmp_path / "b.jsonl")
    with pytest.raises(DataError, match=r"b.jsonl: cannot be read: it is a FIFO"):
        read_path(tmp_path, split=None, purpose="train")


def test_a_folder_called_like_a_file_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").mkdir()
    (tmp_path / "rows.jsonl" / "part-0.jsonl").write_text('{"query": "1"}\n')
    for folder in (tmp_path, tmp_path / "rows.jsonl"):
        assert [row.columns for row in read_path(folder, split=None, purpose="train")] == [{"query": "1"}]


def test_a_line_without_an_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo_core.data.files._MOST_LINE_BYTES", 2**20)
    with open(tmp_path / "rows.jsonl", "wb") as file:
        file.write(b'{"query": "1"}\n')
        file.truncate(2**21)
    with pytest.raises(DataError, match=r"rows.jsonl line 2: has more than 1 MiB; is it a row?"):
        read_path(tmp_path / "rows.jsonl", split=None, purpose="train")


def test_what_the_system_refuses_is_an_error_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.csv").write_text("query\n1\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / "rows.csv"))

    monkeypatch.setattr("grpo_core.data.files.read_bytes", refuse)
    with pytest.raises(DataError, match=r"rows.csv: cannot be read: Permission denied"):
        read_path(tmp_path / "rows.csv", split=None, purpose="train")
