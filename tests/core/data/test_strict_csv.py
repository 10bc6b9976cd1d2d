"""CSV by the letter of RFC 4180."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.data.strict_csv import CsvError, csv_records

CELLS = st.text('ab",\n\r é', max_size=5)
RECORDS = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=5))


@given(records=RECORDS, ending=st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_pythons_writer_quotes_is_read_back(records: list[list[str]], ending: str) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator=ending).writerows(records)
    assert [cells for _, cells in csv_records(file.getvalue())] == records


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("", []),
        ("\n\r\n\r", []),
        ("a,b", [(1, ["a", "b"])]),
        ("a,\n", [(1, ["a", ""])]),
        ("a,", [(1, ["a", ""])]),
        (",", [(1, ["", ""])]),
        ('""', [(1, [""])]),
        ('a\n\n"b\nb\r\nb"\nc\n', [(1, ["a"]), (3, ["b\nb\r\nb"]), (6, ["c"])]),
    ],
)
def test_records_begin_in_a_line_and_empty_lines_are_none(text: str, records: list[tuple[int, list[str]]]) -> None:
    assert list(csv_records(text)) == records


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('a,b\nc"d,e', 2, "a quote inside a cell that does not begin with one"),
        ('a\n"b', 2, "a quote is not closed"),
        ('"a\na"b,c', 1, "'b' after the closing quote of a cell"),
    ],
)
def test_what_is_no_csv_names_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(CsvError, match=message) as caught:
        list(csv_records(text))
    assert caught.value.line == line
