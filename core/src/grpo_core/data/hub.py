"""Hugging Face datasets -> rows, all of them or as they are needed. Images stay encoded, as bytes or paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from grpo_core.data.row import Row
from grpo_core.data.split import take_split
from grpo_core.errors import DataError

__all__ = ["HubStream", "open_stream", "read_hub"]

_BATCH_ROWS = 1000


def read_hub(name: str, *, subset: str | None, split: str | None, purpose: str, title: str = "") -> list[Row]:
    """Download (or take from the cache) one split of a dataset and read its rows.

    `name` is `owner/name`, or a folder that looks like a repository; `title` is what it is called in messages then.
    `subset` is its configuration; None: its default. `split` None: see `take_split`. Raises `DataError` with what the
    hub says when the dataset, subset or split is not there.
    """
    title = title or f"hf:{name}"
    table, chosen = _open(name, subset, split, purpose, title, streaming=False)
    if not len(table):
        raise DataError(f"{title}: the split {chosen} holds no rows")
    return [
        Row(index=index, place=f"{title} {chosen} row {index + 1}", columns=columns)
        for index, columns in enumerate(_each(table))
    ]


def open_stream(name: str, *, subset: str | None, split: str | None, purpose: str) -> HubStream:
    """Open one split of a dataset, to be read while it is used; arguments and errors as those of `read_hub`."""
    table, chosen = _open(name, subset, split, purpose, f"hf:{name}", streaming=True)
    return HubStream(table, f"hf:{name} {chosen}")


class HubStream:
    """The rows of a split in their order, over and over: one pass after another."""

    def __init__(self, table: Any, title: str) -> None:
        """`table` is an iterable dataset of the library."""
        self._table, self._title = table, title
        self._start: Any = None
        self._rows: Iterator[Mapping[str, object]] | None = None
        self._passes = self._read = 0

    @property
    def passes(self) -> int:
        """How often the end was reached."""
        return self._passes

    @property
    def rows_read(self) -> int:
        """Rows of this pass so far."""
        return self._read

    def read(self, count: int) -> list[Row]:
        """The next rows: `count`, or fewer at the end of a pass. Raises `DataError` when they cannot be had, and when
        there are none at all."""
        rows = self._take(count)
        if not rows and self._read:
            self.seek({"passes": self._passes + 1, "rows_read": 0, "library": None})
            rows = self._take(count)
        if not rows:
            raise DataError(f"{self._title}: holds no rows")
        return rows

    def position(self) -> dict[str, Any]:
        """Where the next row is, as JSON values."""
        library = self._start if self._rows is None else self._table.state_dict()
        return {"passes": self._passes, "rows_read": self._read, "library": library}

    def seek(self, position: Mapping[str, Any]) -> None:
        """Go on at a position that `position` gave, of this or another process."""
        self._passes, self._read = position["passes"], position["rows_read"]
        self._start, self._rows = position["library"], None

    def _take(self, count: int) -> list[Row]:
        rows: list[Row] = []
        with _errors(self._title, "cannot be read on", "Once it can be reached again, `grpoctl resume` goes on."):
            if self._rows is None:
                self._table.load_state_dict(self._start)
                self._rows = iter(self._table)
            while len(rows) < count and (columns := next(self._rows, None)) is not None:
                self._read += 1
                rows.append(Row(index=self._read - 1, place=f"{self._title} row {self._read}", columns=columns))
        return rows


def _open(
    name: str, subset: str | None, split: str | None, purpose: str, title: str, *, streaming: bool
) -> tuple[Any, str]:
    """A split as a dataset of the library, and its name."""
    import datasets

    with _errors(
        title,
        "cannot be loaded",
        f"Check the name, ?subset=, the network and the login. A local folder is written ./{name}.",
    ):
        # Which splits there are is known only after loading: datasets that are plain files have no metadata to ask.
        splits: Mapping[str, Any] = datasets.load_dataset(name, subset, streaming=streaming)
    chosen = take_split(list(splits), split, purpose=purpose, where=title)
    table = splits[chosen]
    for column, feature in (table.features or {}).items():
        if isinstance(feature, datasets.Image):
            table = table.cast_column(column, datasets.Image(decode=False))
    return table, chosen


@contextmanager
def _errors(title: str, what: str, hint: str) -> Iterator[None]:
    """What the library raises, as a `DataError`."""
    try:
        yield
    except Exception as error:  # the library passes on whatever those of network and files raise
        raise DataError(f"{title}: {what}: {_first_line(error)}", hint=hint) from error


def _each(table: Any) -> Iterator[Mapping[str, object]]:
    """The rows, read in batches: many times faster than one by one."""
    for batch in table.iter(_BATCH_ROWS):
        for cells in zip(*batch.values(), strict=True):
            yield dict(zip(batch, cells, strict=True))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
