"""Local files and folders -> rows. JSON is read as plain JSON, so a column may mix types; CSV cells stay text.

Always UTF-8, whatever the locale. Every error names the file and the line or row.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from grpo_core.data.row import Row
from grpo_core.data.split import file_split, take_split
from grpo_core.data.strict_csv import CsvError, csv_records
from grpo_core.data.strict_json import parse_json
from grpo_core.errors import DataError
from grpo_core.regular_files import open_file, read_bytes

__all__ = ["SUFFIXES", "read_path"]

_MOST_BYTES = 2**33
"""Of a file that is read as a whole; lines and Parquet have no end."""
_MOST_LINE_BYTES = 2**28
"""Of a line: more than any row with its images has, and less than a file of zeros."""

_IMAGE_SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"))


def read_path(path: Path, *, split: str | None, purpose: str, subset: str | None = None) -> list[Row]:
    """Read a file, or all files of a folder in the order of their names.

    `subset` is a folder in it. `split` picks files of a folder by their name (`train-0001.parquet`, `train/`);
    `purpose` is `train` or `evaluation` and decides when the files belong to several splits and none was named.
    """
    try:
        return _read(path, split, purpose, subset)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{error.filename or path}: cannot be read: {reason}") from error


def _read(path: Path, split: str | None, purpose: str, subset: str | None) -> list[Row]:
    if not os.path.lexists(path):
        raise DataError(f"{path}: there is no such file or folder")
    if not path.is_dir() and (subset or split):
        raise DataError(
            f"{path}: is a file, which has no {'subset' if subset else 'split'}",
            hint="Subsets and splits are those of a folder; remove it, or name the folder.",
        )
    folder = _subset_of(path, subset) if subset else path
    files = _files_of(folder, split, purpose) if folder.is_dir() else [_known(path)]
    rows = [
        (file, place, _with_images(file, columns))
        for file in files
        for place, columns in _READERS[file.suffix.lower()](file)
    ]
    if not rows:
        raise DataError(f"{path}: holds no rows", hint="Is it the right file? Each row is one prompt.")
    return [
        Row(index=index, place=f"{file.name} {place}", columns=columns, folder=file.parent)
        for index, (file, place, columns) in enumerate(rows)
    ]


def _with_images(file: Path, columns: Mapping[str, object]) -> Mapping[str, object]:
    """The columns; those of a `metadata` file that name files beside it, as `datasets` has it for folders of images,
    are images: `file_name` of the column `image`, `file_names` of `images`, `left_file_name` of `left`."""
    if file.stem.lower() != "metadata":
        return columns
    kept: dict[str, object] = {}
    for name, value in columns.items():
        column = _column_of_files(name)
        kept[column if column and column not in (*columns, *kept) else name] = value
    return kept


def _column_of_files(name: str) -> str | None:
    if name in ("file_name", "file_names"):
        return "images" if name.endswith("s") else "image"
    found = re.fullmatch(r"(.+)_file_names?", name)
    return found[1] if found else None


def _known(file: Path) -> Path:
    if file.suffix.lower() not in _READERS:
        raise DataError(
            f"{file}: {file.suffix or 'a name without ending'} is no kind of file that can be read",
            hint=f"Known endings are {', '.join(SUFFIXES)}; or give a folder of such files.",
        )
    return file


def _subset_of(folder: Path, subset: str) -> Path:
    names = sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    if subset not in names:
        raise DataError(
            f"{folder}: has no subset '{subset}'",
            hint=f"A subset is a folder in it; there are: {', '.join(names) or 'none'}.",
        )
    return folder / subset


def _files_of(folder: Path, split: str | None, purpose: str) -> list[Path]:
    if (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file():
        raise DataError(
            f"{folder}: is a folder that Dataset.save_to_disk wrote",
            hint="Write it as Parquet instead: datasets.load_from_disk(FOLDER).to_parquet('data.parquet').",
        )
    found = (path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _READERS and not path.is_dir())
    inside = (path.relative_to(folder) for path in found)
    files = [path for path in inside if not any(part.startswith(".") for part in path.parts)]
    if not files:
        hint = f"Known endings are {', '.join(SUFFIXES)}."
        if any(path.suffix.lower() in _IMAGE_SUFFIXES for path in folder.rglob("*")):
            hint = 'Put a metadata.jsonl beside the images: {"file_name": "0001.png", "query": "…", "solution": "…"}.'
        raise DataError(f"{folder}: holds no file that can be read", hint=hint)
    by_split: dict[str, list[Path]] = {}
    for file in files:
        by_split.setdefault(file_split(file) or "", []).append(folder / file)
    if split is None and len(by_split) == 1:
        return [folder / file for file in files]
    return by_split[take_split(sorted(by_split), split, purpose=purpose, where=str(folder))]


def _read_jsonl(file: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    with open_file(file) as lines:
        for number, line in enumerate(iter(partial(lines.readline, _MOST_LINE_BYTES + 1), b""), start=1):
            if len(line) > _MOST_LINE_BYTES:
                raise DataError(f"{file} line {number}: has more than {_MOST_LINE_BYTES // 2**20} MiB; is it a row?")
            text = _decode(file, f"line {number}", line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
            if text.strip():
                yield f"line {number}", _as_row(file, f"line {number}", _parse(file, f"line {number}", text))


def _read_json(file: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """A list of objects, one object, or lines of objects after all, which many files of this ending hold."""
    text = _decode(file, "", read_bytes(file, most=_MOST_BYTES).removeprefix(b"\xef\xbb\xbf"))
    if not text.strip():
        return
    try:
        value = parse_json(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            yield from _read_jsonl(file)
            return
        raise DataError(f"{file}: is not valid JSON: {error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: is not valid JSON: {error}") from error
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        yield f"row {number}", _as_row(file, f"row {number}", item)


def _read_csv(file: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    records = csv_records(_decode(file, "", read_bytes(file, most=_MOST_BYTES).removeprefix(b"\xef\xbb\xbf")))
    try:
        first, header = next(records, (1, []))
        if "" in header or len(set(header)) < len(header):
            raise DataError(f"{file} line {first}: every column needs a name of its own, not {header}")
        for line, cells in records:
            if len(cells) != len(header):
                raise DataError(f"{file} line {line}: {len(cells)} cells, but {len(header)} columns")
            yield f"line {line}", dict(zip(header, cells, strict=True))
    except CsvError as error:
        raise DataError(f"{file} line {error.line}: is not valid CSV: {error}") from error


def _read_parquet(file: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    import pyarrow
    import pyarrow.parquet

    with open_file(file) as source:
        try:
            parquet = pyarrow.parquet.ParquetFile(source, page_checksum_verification=True)
            rows: list[dict[str, Any]] = parquet.read().to_pylist()
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise DataError(f"{file}: is not valid Parquet: {error}") from error
    yield from ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _decode(file: Path, place: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{file} {place}".rstrip()
        raise DataError(f"{where}: is not UTF-8 text: {error}", hint="Save the file as UTF-8.") from error


def _parse(file: Path, place: str, text: str) -> object:
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} {place}: is not valid JSON: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)


def _as_row(file: Path, place: str, value: object) -> Mapping[str, object]:
    if isinstance(value, dict):
        return value
    raise DataError(
        f"{file} {place}: a row is a JSON object with column names, not {type(value).__name__}",
        hint='Write {"query": "6*7?", "solution": "42"}, one a line in .jsonl; a list of them belongs in a .json file.',
    )


_READERS: Mapping[str, Callable[[Path], Iterator[tuple[str, Mapping[str, object]]]]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
SUFFIXES = tuple(_READERS)
"""Endings of the files that can be read."""
