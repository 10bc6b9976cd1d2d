"""Hugging Face datasets -> rows. Images stay encoded, as bytes or paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grpo_core.data.row import Row
from grpo_core.data.split import take_split
from grpo_core.errors import DataError

__all__ = ["read_hub"]

_BATCH_ROWS = 1000


def read_hub(name: str, *, subset: str | None, split: str | None, purpose: str) -> list[Row]:
    """Download (or take from the cache) one split of a dataset and read its rows.

    `name` is `owner/name`. `subset` is its configuration; None: its default. `split` None: see `take_split`. Raises
    `DataError` with what the hub says when the dataset, subset or split is not there.
    """
    import datasets
    from huggingface_hub.errors import HfHubHTTPError

    try:
        # Which splits there are is known only after loading: datasets that are plain files have no metadata to ask.
        splits: Mapping[str, Any] = datasets.load_dataset(name, subset)
    except (datasets.exceptions.DatasetsError, HfHubHTTPError, OSError, ValueError, RuntimeError) as error:
        raise DataError(
            f"hf:{name}: cannot be loaded: {_first_line(error)}",
            hint=f"Check the name, ?subset=, the network and the login. A local folder is written ./{name}.",
        ) from error
    chosen = take_split(list(splits), split, purpose=purpose, where=f"hf:{name}")
    table = splits[chosen]
    for column, feature in table.features.items():
        if isinstance(feature, datasets.Image):
            table = table.cast_column(column, datasets.Image(decode=False))
    if not len(table):
        raise DataError(f"hf:{name}: the split {chosen} holds no rows")
    return [
        Row(index=index, place=f"{name} {chosen} row {index + 1}", columns=columns)
        for index, columns in enumerate(_each(table))
    ]


def _each(table: Any) -> Iterator[Mapping[str, object]]:
    """The rows, read in batches: many times faster than one by one."""
    for batch in table.iter(_BATCH_ROWS):
        for cells in zip(*batch.values(), strict=True):
            yield dict(zip(batch, cells, strict=True))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
