"""From a reference to a dataset to where its rows come from and what makes samples of them.

Names become places here: after this, nobody needs the catalog to read the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grpo_core.errors import Problem, RecipeError, UsageError
from grpo_core.plugins.catalog import Catalog, Entry
from grpo_core.plugins.references import Form, Reference, check_details, check_form, parse_reference
from grpo_core.plugins.specs import DatasetSpec
from grpo_core.recipe.components import plan_entry, plan_object
from grpo_core.recipe.plan import PlannedComponent, PlannedDataset

__all__ = ["Rows", "find_rows", "plan_dataset", "plan_preprocess"]

DETAILS: Mapping[Form, tuple[str, ...]] = {"path": ("split",), "hub": ("subset", "split"), "name": ()}
"""What may follow `?`, by where rows come from; those a plugin makes are set by its options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Where rows come from."""

    reference: Reference
    """A path, a hub id, or the name of a dataset that makes its own rows."""
    entry: Entry | None
    """The registered dataset that was named, or that knows the hub id; None: nobody in particular."""
    is_named: bool
    """Whether the reference was the entry's name."""

    @property
    def source(self) -> str | None:
        """The target that makes the rows; None when they are read."""
        spec = self.entry.spec if self.entry else None
        return spec.source if isinstance(spec, DatasetSpec) and self.reference.form == "name" else None

    def planned(self, preprocess: PlannedComponent | None) -> PlannedDataset:
        """The plan, with what makes samples of the rows."""
        return PlannedDataset(reference=str(self.reference), preprocess=preprocess, source=self.source)


def plan_dataset(
    reference_text: str,
    *,
    catalog: Catalog,
    preprocess: str | None = None,
    options: Mapping[str, Any] | None = None,
    base: Path | None = None,
) -> PlannedDataset:
    """Plan a dataset by its reference: `countdown`, `countdown?path=./rows.jsonl#20`, `rows.jsonl`, `hf:owner/name`.

    Args:
        reference_text: relative paths in it start at `base`, or at the working directory.
        catalog: where names are looked up.
        preprocess: the name of a registered dataset, or `file.py:function`; None: the dataset's own, or that of the
            plugin that knows the hub id.
        options: of the dataset named, or of `preprocess`.
        base: a folder.

    Raises:
        UsageError, UnknownComponent, AmbiguousComponent, BrokenReference: a reference leads nowhere.
        RecipeError: wrong options, every one of them, paths beginning with `options`.
    """
    rows = find_rows(reference_text, catalog=catalog, base=base)
    return rows.planned(plan_preprocess(rows, preprocess, options or {}, catalog=catalog, base=base))


def find_rows(text: str, *, catalog: Catalog, base: Path | None = None) -> Rows:
    """Where the rows of a dataset come from; raises what `plan_dataset` raises for its reference."""
    reference = check_form(parse_reference(text, base=base), ("name", "hub", "path"), what="a dataset")
    if reference.form == "name":
        entry = catalog.find("dataset", reference.value)
        if entry is not None:
            place = _place_of_rows(reference, entry)
            check_details(reference, ("path", *DETAILS[place.form]), rows=True)
            return Rows(reference=place, entry=entry, is_named=True)
        reference = replace(reference, form="hub", hub="hf")
    check_details(reference, DETAILS[reference.form], rows=True)
    entry = catalog.for_hub_id(reference.value) if reference.form == "hub" else None
    return Rows(reference=reference, entry=entry, is_named=False)


def plan_preprocess(
    rows: Rows, preprocess: str | None, options: Mapping[str, Any], *, catalog: Catalog, base: Path | None = None
) -> PlannedComponent | None:
    """What makes samples of the rows; None: the mapping of well-known column names."""
    if preprocess is None:
        if rows.entry is not None:
            return plan_entry(rows.entry, options)
        if options:
            message = "a file or hub id takes no options; they are for a registered dataset, see `dataset.preprocess`"
            raise RecipeError([Problem(path="options", message=message)])
        return None
    if rows.is_named and rows.entry is not None:
        raise UsageError(
            f"'{rows.entry.spec.name}' makes its own samples, so there is no room for '{preprocess}'",
            hint="Remove `preprocess`, or name the rows themselves: a file or a hub id.",
        )
    reference = check_form(parse_reference(preprocess, base=base), ("name", "object"), what="a preprocessor")
    check_details(reference, ())
    if reference.form == "object":
        return plan_object(reference, options)
    return plan_entry(catalog.get("dataset", reference.value), options)


def _place_of_rows(reference: Reference, entry: Entry) -> Reference:
    """The rows of a registered dataset: the file it is given, those it makes, or those of the hub it was made for."""
    spec = entry.spec
    assert isinstance(spec, DatasetSpec)
    if "path" in reference.details:
        details = {key: value for key, value in reference.details.items() if key != "path"}
        return replace(reference, form="path", value=reference.details["path"], details=details)
    if spec.source is not None:
        return replace(reference, value=entry.qualified_name)
    if spec.hub_ids:
        return replace(reference, form="hub", hub="hf", value=spec.hub_ids[0])
    raise UsageError(
        f"'{reference.text}' has no rows of its own", hint=f"Say where they are: {reference.value}?path=./rows.jsonl"
    )
