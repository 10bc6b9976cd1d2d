"""Broken dataset files: what is read is what the format says, to the last cell, or an error names the place.

What a file means is told by readers of our own below, written from the formats' definitions and stricter than any
library's: they give the rows, or say that there is something wrong.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grpo_core.data.files import read_path
from grpo_core.errors import DataError
from tests.fuzz.mutations import mutated

Rows = list[dict[str, Any]]

ROWS: Rows = [
    {"query": "What is 6*7?", "solution": "42", "level": 3},
    {"query": 'Say "hi",\nü', "solution": None, "nested": {"a": [1, 2.5, True]}},
    {"query": "Add 1 and 2.", "solution": "3", "level": -1},
]
CELLS = [["query", "solution"], ["What is 6*7?", "42"], ['Say "hi",\nü', ""], ["a, b", "c"]]

JSON_LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
JSON = json.dumps(ROWS, indent=1).encode()
CSV = "".join(",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in line) + "\r\n" for line in CELLS).encode()


def parquet() -> bytes:
    """A file whose pages have checksums."""
    file = io.BytesIO()
    table = pa.table({"query": [row["query"] for row in ROWS] * 20, "level": list(range(60))})
    pq.write_table(table, file, write_page_checksum=True, row_group_size=25)
    return file.getvalue()


class WrongFileError(Exception):
    """The file is not what its format says."""


def strictly(text: str) -> Any:
    """JSON without the liberties of Python's reader."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise WrongFileError("a key twice")
        return dict(pairs)

    def no_number(text: str) -> float:
        raise WrongFileError(text)

    def finite(text: str) -> float:
        if math.isinf(float(text)):
            raise WrongFileError(text)
        return float(text)

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_number, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise WrongFileError(str(error)) from error


def decoded(data: bytes) -> str:
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongFileError(str(error)) from error


def meant_by_json_lines(data: bytes) -> Rows:
    rows = [strictly(line) for line in decoded(data).split("\n") if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise WrongFileError("no object")
    return rows


def meant_by_json(data: bytes) -> Rows:
    text = decoded(data)
    if not text.strip():
        return []
    try:
        value = strictly(text)
    except WrongFileError:
        return meant_by_json_lines(data)
    rows = value if isinstance(value, list) else [value]
    if not all(isinstance(row, dict) for row in rows):
        raise WrongFileError("no object")
    return rows


def meant_by_csv(data: bytes) -> Rows:
    """RFC 4180, lines ending in CR, LF or both; empty lines between records are none."""
    records, record, cell, state = [], [], "", "start"
    text = decoded(data)
    for position, sign in enumerate([*text, None]):
        if state == "quoted":
            if sign is None:
                raise WrongFileError("a quote is not closed")
            state, cell = ("closed", cell) if sign == '"' else (state, cell + sign)
        elif sign == '"' and state in ("start", "closed"):
            cell, state = (cell + '"' if state == "closed" else cell), "quoted"
        elif sign in (",", "\r", "\n", None):
            if sign == "," or record or state != "start":
                record.append(cell)
            if sign != "," and record:
                records.append(record)
                record = []
            cell, state = "", "start"
            if sign == "," and position == len(text) - 1:
                record.append("")
                records.append(record)
                record = []
        elif state == "closed" or sign == '"':
            raise WrongFileError("a quote inside a cell")
        else:
            cell, state = cell + str(sign), "plain"
    if not records:
        return []
    header, *lines = records
    if "" in header or len(set(header)) < len(header) or any(len(line) != len(header) for line in lines):
        raise WrongFileError("columns")
    return [dict(zip(header, line, strict=True)) for line in lines]


FORMATS: dict[str, tuple[bytes, Callable[[bytes], Rows]]] = {
    ".jsonl": (JSON_LINES, meant_by_json_lines),
    ".json": (JSON, meant_by_json),
    ".csv": (CSV, meant_by_csv),
}
BROKEN = st.sampled_from(sorted(FORMATS)).flatmap(
    lambda suffix: st.tuples(st.just(suffix), mutated(FORMATS[suffix][0]))
)
PARQUET = parquet()


def read(file: Path, data: bytes) -> Rows | DataError:
    """The rows, or the error that names the file."""
    file.write_bytes(data)
    try:
        return [dict(row.columns) for row in read_path(file, split=None, purpose="train")]
    except DataError as error:
        found = error
    assert found.message.startswith(str(file)), found.message
    return found


def meaning(suffix: str, data: bytes) -> Rows | WrongFileError:
    try:
        return FORMATS[suffix][1](data)
    except WrongFileError as wrong:
        return wrong


def check_text(folder: Path, broken: tuple[str, bytes]) -> None:
    suffix, data = broken
    found = read(folder / f"rows{suffix}", data)
    meant = meaning(suffix, data)
    if isinstance(meant, WrongFileError):
        assert isinstance(found, DataError), f"accepted, though wrong ({meant}): {found}"
    elif not meant:
        assert isinstance(found, DataError)
        assert "holds no rows" in found.message
    else:
        assert not isinstance(found, DataError), f"refused, though right: {found}"
        assert json.dumps(found) == json.dumps(meant)


def check_parquet(folder: Path, data: bytes) -> None:
    found = read(folder / "rows.parquet", data)
    assert isinstance(found, DataError) or all(isinstance(row, dict) for row in found)


SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.parametrize("suffix", sorted(FORMATS))
def test_the_sound_files_are_read_as_the_formats_say(suffix: str, tmp_path: Path) -> None:
    sound, meant_by = FORMATS[suffix]
    assert read(tmp_path / f"rows{suffix}", sound) == meant_by(sound)
    assert len(meant_by(sound)) == 3


@given(broken=BROKEN)
@settings(max_examples=300, deadline=None, suppress_health_check=SHARED)
def test_a_broken_file_is_read_as_its_format_says_or_refused(tmp_path: Path, broken: tuple[str, bytes]) -> None:
    check_text(tmp_path, broken)


@given(data=mutated(PARQUET))
@settings(max_examples=100, deadline=None, suppress_health_check=SHARED)
def test_a_broken_parquet_file_is_refused_or_has_rows(tmp_path: Path, data: bytes) -> None:
    check_parquet(tmp_path, data)


@pytest.mark.slow
@given(broken=BROKEN)
@settings(max_examples=5_000, deadline=None, suppress_health_check=SHARED)
def test_a_broken_file_is_read_as_its_format_says_or_refused_thoroughly(
    tmp_path: Path, broken: tuple[str, bytes]
) -> None:
    check_text(tmp_path, broken)


@pytest.mark.slow
@given(data=mutated(PARQUET))
@settings(max_examples=2_000, deadline=None, suppress_health_check=SHARED)
def test_a_broken_parquet_file_is_refused_or_has_rows_thoroughly(tmp_path: Path, data: bytes) -> None:
    check_parquet(tmp_path, data)


@given(place=st.integers(0, len(PARQUET) - 1), bit=st.integers(0, 7))
@settings(max_examples=100, deadline=None, suppress_health_check=SHARED)
def test_a_flipped_bit_in_the_cells_of_a_parquet_file_is_noticed(tmp_path: Path, place: int, bit: int) -> None:
    sound = pq.ParquetFile(io.BytesIO(PARQUET)).read().to_pylist()
    flipped = bytearray(PARQUET)
    flipped[place] ^= 1 << bit
    footer = len(PARQUET) - 8 - int.from_bytes(PARQUET[-8:-4], "little")
    found = read(tmp_path / "rows.parquet", bytes(flipped))
    assert isinstance(found, DataError) or found == sound or place >= footer
