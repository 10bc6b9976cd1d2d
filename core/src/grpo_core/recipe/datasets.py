"""From a reference to a dataset to where its rows come from and what makes samples of them.

Names become places here: after this, nobody needs the catalog to read the rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grpo_core.errors import PluginError, Problem, RecipeError, UnknownComponent, UsageError
from grpo_core.plugins.catalog import Catalog, Entry, not_installed
from grpo_core.plugins.references import Form, Reference, check_details, check_form, parse_reference
from grpo_core.plugins.specs import DatasetSpec
from grpo_core.recipe.components import plan_entry, plan_object
from grpo_core.recipe.extras import EXTRAS
from grpo_core.recipe.mix import mix_names
from grpo_core.recipe.names import Names
from grpo_core.recipe.overrides import dotted
from grpo_core.recipe.plan import PlannedComponent, PlannedDataset
from grpo_core.recipe.problems import Problems
from grpo_core.recipe.schema import DataSettings, MixedDataset
from grpo_core.recipe.streams import STREAM_DETAILS, buffer_rows
from grpo_core.recipe.validate import PLACEHOLDER

__all__ = ["plan_dataset", "plan_datasets", "training_datasets"]

DETAILS: Mapping[Form, tuple[str, ...]] = {
    "path": ("subset", "split"),
    "hub": ("subset", "split", *STREAM_DETAILS),
    "name": (),
}
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


def training_datasets(data: DataSettings) -> dict[str, MixedDataset]:
    """Every training dataset with its defaults filled in, by the dotted path of its settings; one that is not in a mix
    has no name."""
    if not data.mix:
        shared = data.model_dump(include={"options", "preprocess", "columns", "system"})
        return {} if data.use is None else {"dataset": MixedDataset(use=data.use, **shared)}
    shared = {"preprocess": data.preprocess, "columns": data.columns, "system": data.system}
    names = mix_names([entry.model_dump() for entry in data.mix])
    return {
        dotted(("dataset", "mix", name or place)): entry.model_copy(
            update={"name": name} | {key: value for key, value in shared.items() if getattr(entry, key) is None}
        )
        for place, (entry, name) in enumerate(zip(data.mix, names, strict=True))
    }


def plan_datasets(
    data: DataSettings, found: Problems, names: Names
) -> tuple[tuple[PlannedDataset, ...], PlannedDataset | None]:
    """Plan the training datasets, and the one of evaluation when there is one of its own.

    What leads nowhere is noted in `found` and left out.
    """
    training: list[tuple[Rows, PlannedDataset]] = []
    for address, entry in training_datasets(data).items():
        rows = _found_rows(entry.use, address, "use", found, names)
        if rows is not None:
            with found.at(address, "preprocess" if entry.preprocess else "use"):
                catalog = names.at(f"{address}.preprocess", "dataset.preprocess")
                planned = _planned(entry, rows, catalog)
                training.append((rows, planned.model_copy(update={"bad_images": data.bad_images})))
    evaluation = None
    if data.evaluation is not None:
        rows = _found_rows(data.evaluation, "dataset", "evaluation", found, names)
        if rows is not None:
            with found.at("dataset", "evaluation"):
                planned = _planned_evaluation(data, rows, training, names.at("dataset.preprocess"))
                evaluation = planned.model_copy(update={"bad_images": data.bad_images})
    return tuple(planned for _, planned in training), evaluation


def plan_dataset(entry: MixedDataset, *, catalog: Catalog, base: Path | None = None) -> PlannedDataset:
    """Plan one dataset: `countdown`, `countdown?path=./rows.jsonl#20`, `rows.jsonl`, `hf:owner/name`.

    Args:
        entry: its settings; `system` is the text itself.
        catalog: where names are looked up.
        base: the folder where relative paths start; None: the working directory.

    Raises:
        UsageError, UnknownComponent, AmbiguousComponent, BrokenReference: a reference leads nowhere.
        PluginError: something it needs is not installed.
        RecipeError: wrong options, every one of them, paths beginning with `options`.
    """
    return _planned(entry, find_rows(entry.use, catalog=catalog, base=base), catalog, base)


def find_rows(text: str, *, catalog: Catalog, base: Path | None = None) -> Rows:
    """Where the rows of a dataset come from."""
    reference = check_form(parse_reference(text, base=base), ("name", "hub", "path"), what="a dataset")
    if reference.form == "name":
        entry = _named(reference, catalog, base)
        if entry is not None:
            place = _place_of_rows(reference, entry)
            buffer_rows(place)  # says what can be streamed, where the next line would know nothing of streams
            _check_named(reference, entry, ("path", *DETAILS[place.form]))
            return Rows(reference=place, entry=entry, is_named=True)
        reference = replace(reference, form="hub", hub="hf")
    buffer_rows(reference)
    check_details(reference, DETAILS[reference.form], rows=True)
    entry = catalog.for_hub_id(reference.value) if reference.form == "hub" else None
    if reference.hub == "ms":
        _need_modelscope(reference, entry)
    return Rows(reference=reference, entry=entry, is_named=False)


def _check_named(reference: Reference, entry: Entry, details: Sequence[str]) -> None:
    """Raise `UsageError` for a detail that a registered dataset does not have; it may be meant for an option."""
    try:
        check_details(reference, details, rows=True)
    except UsageError as error:
        wrong = next(key for key in reference.details if key not in details)
        if not isinstance(entry.spec, DatasetSpec) or entry.spec.options is None:
            raise
        option = f"An option of it is set otherwise: --set dataset.options.{wrong}={reference.details[wrong]}."
        raise UsageError(error.message, hint=f"{error.hint} {option}") from None


def _named(reference: Reference, catalog: Catalog, base: Path | None) -> Entry | None:
    try:
        return catalog.find("dataset", reference.value)
    except UnknownComponent as error:
        here = (base or Path()) / reference.value
        if not os.path.exists(here):
            raise
        what = "a file" if here.is_file() else "a folder" if any(here.iterdir()) else "an empty folder"
        hint = f"Write ./{reference.text} for what is in the {what.split()[-1]}."
        raise UsageError(f"{error.message}, but {what} of this name is here", hint=hint) from None


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
        raise _two_preprocessors(rows.entry.spec, preprocess)
    reference = check_form(parse_reference(preprocess, base=base), ("name", "object"), what="a preprocessor")
    check_details(reference, ())
    if reference.form == "object":
        return plan_object(reference, options)
    return plan_entry(catalog.get("dataset", reference.value), options)


def _two_preprocessors(spec: object, preprocess: str) -> UsageError:
    assert isinstance(spec, DatasetSpec)
    own = [f"hf:{hub_id}" for hub_id in spec.hub_ids[:1]]
    return UsageError(
        f"'{spec.name}' is a name for rows together with what makes samples of them, so '{preprocess}' would have "
        "nothing to do",
        hint=f"Remove `preprocess`; or keep it, and instead of '{spec.name}' name the rows alone: "
        f"{' or '.join([*own, './rows.jsonl' if own else './rows.jsonl or hf:owner/name'])}.",
    )


def _need_modelscope(reference: Reference, entry: Entry | None) -> None:
    missing = not_installed(EXTRAS["modelscope"])
    if missing:
        ids = entry.spec.hub_ids if entry and isinstance(entry.spec, DatasetSpec) else ()
        twin = f"the same rows are hf:{ids[0]}" if ids else "many datasets are on Hugging Face too, as hf:owner/name"
        raise PluginError(
            f"'{reference.text}' needs {missing[0]}, not installed here",
            hint=f"pip install 'grpo-core[modelscope]'; or {twin}.",
        )


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


def _found_rows(text: str, section: str, key: str, found: Problems, names: Names) -> Rows | None:
    if text == PLACEHOLDER:
        return None
    with found.at(section, key):
        return find_rows(text, catalog=names.at(f"{section}.{key}"))
    return None


def _planned(entry: MixedDataset, rows: Rows, catalog: Catalog, base: Path | None = None) -> PlannedDataset:
    return PlannedDataset(
        name=entry.name or "",
        weight=entry.weight,
        reference=str(rows.reference),
        preprocess=plan_preprocess(rows, entry.preprocess, entry.options, catalog=catalog, base=base),
        source=rows.source,
        buffer_rows=buffer_rows(rows.reference),
        columns=entry.columns or {},
        system=entry.system,
    )


def _planned_evaluation(
    data: DataSettings, rows: Rows, training: Sequence[tuple[Rows, PlannedDataset]], catalog: Catalog
) -> PlannedDataset:
    """The evaluation dataset. Rows that nobody in particular knows are taken to be like those of training: of the
    training dataset, in a mix of the one that has the same rows, for instance in another split."""
    same = [pair for pair in training if pair[0].reference.value == rows.reference.value]
    like = same or (training if not data.mix else [])
    shared = data.model_dump(include={"preprocess", "columns", "system"})
    if not like:
        [name] = mix_names([{"use": data.evaluation}])
        return _planned(MixedDataset(use=str(data.evaluation), name=name, **shared), rows, catalog)
    [train, planned] = like[0]
    is_other = rows.entry is not None and rows.entry != train.entry
    has_own_way = is_other and (data.preprocess is None or rows.is_named)
    preprocess = plan_preprocess(rows, None, {}, catalog=catalog) if has_own_way else planned.preprocess
    own = {"weight": None, "reference": str(rows.reference), "source": rows.source, "preprocess": preprocess}
    return planned.model_copy(update={**own, "buffer_rows": buffer_rows(rows.reference)})
