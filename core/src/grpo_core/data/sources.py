"""Where rows come from: a local path, a hub, or a plugin's own source; then the subset that `#N` asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from random import Random
from typing import Any, Literal, cast

from grpo_core.data.files import read_path
from grpo_core.data.given import check_made
from grpo_core.data.hub import read_hub
from grpo_core.data.modelscope import read_modelscope
from grpo_core.data.row import Row
from grpo_core.errors import DataError, GrpoError, PluginError
from grpo_core.plugins.faults import describe
from grpo_core.plugins.references import Reference, check_details, parse_reference
from grpo_core.plugins.targets import load_target
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.recipe.streams import STREAM_DETAILS

__all__ = ["Purpose", "read_rows", "without_sampling"]

Purpose = Literal["train", "evaluation"]


def read_rows(dataset: PlannedDataset, *, split: Purpose, seed: int, limit: int | None = None) -> list[Row]:
    """Read the rows of a dataset.

    `split` is what they are for: the split a plugin's source makes, and the choice among a dataset's splits when the
    reference names none. `#N` takes N rows of a seeded permutation, so `#100` is part of `#200`; a plugin's source has
    drawn its rows already, and gives its first N. `limit` then keeps the first so many. Raises `DataError`, also when
    there are fewer rows than asked for.
    """
    reference = parse_reference(dataset.reference)
    if dataset.source is not None:
        check_details(reference, (), rows=True)
        return _from_source(dataset, split, seed, _smaller(reference.rows, limit))
    rows = _sampled(_read(reference, split), reference.rows, seed, dataset.reference)
    if limit is not None and limit > len(rows):
        raise _too_few(dataset.reference, limit, len(rows))
    return rows[:limit]


def without_sampling(dataset: PlannedDataset) -> PlannedDataset:
    """The same dataset without `#N`."""
    whole = dataset.reference.rpartition("#")[0] or dataset.reference
    return dataset.model_copy(update={"reference": whole})


def _read(reference: Reference, split: Purpose) -> list[Row]:
    asked = reference.details.get("split")
    subset = reference.details.get("subset")
    if reference.form == "path":
        check_details(reference, ("split", "subset"), rows=True)
        return read_path(reference.path, subset=subset, split=asked, purpose=split)
    check_details(reference, ("split", "subset", *STREAM_DETAILS), rows=True)
    read = read_hub if reference.hub == "hf" else read_modelscope
    return read(reference.value, subset=subset, split=asked, purpose=split)


def _sampled(rows: list[Row], wanted: int | None, seed: int, reference: str) -> list[Row]:
    if wanted is None:
        return rows
    if wanted > len(rows):
        raise _too_few(reference, wanted, len(rows))
    order = list(range(len(rows)))
    Random(f"rows of a dataset {seed}").shuffle(order)
    return [rows[index] for index in sorted(order[:wanted])]


def _from_source(dataset: PlannedDataset, split: Purpose, seed: int, limit: int | None) -> list[Row]:
    if split == "evaluation" and limit is None:
        raise DataError(
            f"{dataset.reference}: makes as many evaluation rows as are asked for, and none were",
            hint="Set dataset.evaluation_rows, for instance --eval-rows 200.",
        )
    name = parse_reference(dataset.reference).short_name
    rows = [
        Row(index=index, place=f"{name} {split} row {index + 1}", columns=columns)
        for index, columns in enumerate(islice(_made(dataset, split, seed), limit))
    ]
    if limit is not None and len(rows) < limit:
        raise _too_few(dataset.reference, limit, len(rows), more=_more_rows(dataset, limit) if split == "train" else "")
    if not rows:
        raise DataError(f"{dataset.reference}: its source '{dataset.source}' made no row for the split '{split}'")
    return rows


def _more_rows(dataset: PlannedDataset, wanted: int) -> str:
    """What is advised where the dataset has an option `rows`."""
    if dataset.preprocess is None or "rows" not in dataset.preprocess.options:
        return ""
    section = f"dataset.mix.{dataset.name}" if dataset.name else "dataset"
    return f", or have more made: --set {section}.options.rows={wanted}"


def _made(dataset: PlannedDataset, split: Purpose, seed: int) -> Iterable[Mapping[str, object]]:
    assert dataset.source is not None
    make_rows = load_target(dataset.source)
    if not callable(make_rows):
        raise PluginError(
            f"'{dataset.source}' is the source of a dataset, so it must be a function; it is {make_rows!r}"
        )
    component = dataset.preprocess
    model = cast(Any, load_target(component.options_model)) if component and component.options_model else None
    options = model.model_validate(component.options) if model and component else None
    try:
        made = make_rows(options, split=split, seed=seed)
        if not isinstance(made, Iterable):
            raise PluginError(f"'{dataset.source}' gave {made!r:.60}, not rows", hint="Yield a dict for each row.")
        for number, row in enumerate(made, 1):
            yield check_made(row, dataset.source, number)
    except GrpoError:
        raise
    except (Exception, SystemExit) as error:  # whatever a plugin's code raises
        raise PluginError(f"'{dataset.source}' failed to make rows: {describe(error)}") from error


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)


def _too_few(reference: str, wanted: int, there: int, *, more: str = "") -> DataError:
    return DataError(
        f"{reference}: {wanted} rows are asked for, and there are {there}", hint=f"Ask for at most {there}{more}."
    )
