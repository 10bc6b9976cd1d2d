"""`grpoctl datasets`: what is registered, and what rows become: the prompt a model sees, the columns rewards see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grpo_core.cli.common import JsonFlag, PluginFiles, load_plugins
from grpo_core.cli.console import print_json, stderr
from grpo_core.cli.flags import SetOption
from grpo_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grpo_core.data.samples import LoadedSamples
    from grpo_core.model.vision import Vision
    from grpo_core.plugins.catalog import Catalog
    from grpo_core.recipe.schema import ModelSettings, Recipe
    from grpo_core.types import Sample

__all__ = ["register"]

_app = typer.Typer(no_args_is_help=True, help="What is registered, and what a dataset becomes.")


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    app.add_typer(_app, name="datasets")


@_app.command("list")
def list_datasets(plugin: PluginFiles = None, as_json: JsonFlag = False) -> None:
    """The registered datasets; files and hf:owner/name need no registration."""
    from grpo_core.cli import dataset_views

    entries = load_plugins(plugin).catalog.entries("dataset")
    if as_json:
        print_json([dataset_views.facts_of(entry) for entry in entries])
    else:
        dataset_views.show_list(entries)


@_app.command("preview")
def preview(
    reference: Annotated[str, typer.Argument(metavar="REF", help="A name, a file or folder, hf:owner/name#500.")],
    model: Annotated[
        str | None, typer.Option(metavar="PATH", help="Render prompts with the chat template of this model.")
    ] = None,
    columns: Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="Rename a column. Repeatable.")] = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT|FILE", help="System prompt.")] = None,
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="How many rows to show.")] = 3,
    set_: SetOption = None,
    plugin: PluginFiles = None,
    as_json: JsonFlag = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write the rows with their pictures as a page.")
    ] = None,
) -> None:
    """Rows as the model and the rewards see them. All rows are read, so every one that cannot be used is found."""
    from grpo_core.cli import dataset_views

    flags = {"dataset": reference, "columns": columns, "system": system, "set_": set_, "model": model}
    recipe = _settings(flags)
    shown_model = None if model is None else recipe.model
    loaded = list(_load(recipe, load_plugins(plugin).catalog))
    previews = [_preview(each, shown_model, rows) for each in loaded]
    if html is not None:
        _write_page(html, [(facts, each.samples[:rows]) for facts, each in zip(previews, loaded, strict=True)])
    if as_json:
        print_json(previews[0] if len(previews) == 1 else previews)
        return
    for facts in previews:
        dataset_views.show_preview(facts)
        for warning in facts["warnings"]:
            stderr.print(f"warning: {warning}", markup=False)


def _settings(flags: Mapping[str, Any]) -> Recipe:
    """The settings as `grpoctl train` would read them; what a preview does not need is filled in."""
    from grpo_core.cli.planning import gather
    from grpo_core.recipe.validate import validate

    return validate(gather(None, {"rewards": "none", **flags, "model": flags["model"] or "none"}))


def _load(recipe: Recipe, catalog: Catalog) -> Iterator[LoadedSamples]:
    """The samples of each dataset."""
    from grpo_core.data.prepare import open_dataset
    from grpo_core.recipe.datasets import plan_dataset, training_datasets
    from grpo_core.recipe.paths import read_text_setting
    from grpo_core.types import BuildContext

    seed = recipe.run.seed
    for entry in training_datasets(recipe.dataset).values():
        system = entry.system and read_text_setting(entry.system)
        dataset = plan_dataset(entry.model_copy(update={"system": system}), catalog=catalog)
        dataset = dataset.model_copy(update={"bad_images": recipe.dataset.bad_images})
        loaded, stream = open_dataset(dataset, seed, BuildContext(seed=seed))
        note = f"{dataset.reference}: is streamed, and only its first rows were read"
        yield loaded if stream is None else replace(loaded, warnings=(*loaded.warnings, note))


def _preview(loaded: LoadedSamples, model: ModelSettings | None, rows: int) -> dict[str, Any]:
    """What is shown of a dataset; `model` has the chat template to write prompts with."""
    from grpo_core.cli import dataset_views

    if model is None:
        return {**dataset_views.preview_of(loaded, None, rows), "warnings": [*loaded.warnings]}
    prompts, warnings, vision = _rendered(loaded, model, rows)
    facts = dataset_views.preview_of(loaded, prompts, rows, vision)
    return {**facts, "warnings": [*loaded.warnings, *warnings]}


def _write_page(file: Path, previews: Sequence[tuple[Mapping[str, Any], Sequence[Sample]]]) -> None:
    from grpo_core.cli.dataset_page import preview_page

    page = preview_page(previews)
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}", hint="Choose another --html.") from error
    stderr.print(f"written: {file}", markup=False)


def _rendered(
    loaded: LoadedSamples, model: ModelSettings, rows: int
) -> tuple[list[tuple[str, int]], tuple[str, ...], Vision | None]:
    """Text and length in tokens of the first prompts, what to say about the template, how the model reads images."""
    from grpo_core.data.prompts import render_prompts
    from grpo_core.model.tokenizer import load_tokenizer
    from grpo_core.model.vision import load_vision
    from grpo_core.recipe.paths import read_text_setting

    template = model.chat_template and read_text_setting(model.chat_template)
    model = model.model_copy(update={"chat_template": template})
    tokenizer = load_tokenizer(model)
    vision = load_vision(model)
    rendered = render_prompts(
        loaded.samples[:rows],
        tokenizer,
        max_prompt_tokens=None,
        over_long="drop",
        template_options=model.chat_template_options,
        vision=vision,
    )
    return [(prompt.text, len(prompt.token_ids)) for prompt in rendered.prompts], rendered.warnings, vision
