"""`grpoctl datasets`: what is registered, and what rows become: the prompt a model sees, the columns rewards see."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grpo_core.cli.common import JsonFlag, PluginFiles, load_plugins
from grpo_core.cli.console import print_json, stderr
from grpo_core.cli.flags import SetOption

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grpo_core.data.samples import LoadedSamples
    from grpo_core.plugins.catalog import Catalog
    from grpo_core.recipe.schema import ModelSettings, Recipe

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
) -> None:
    """Rows as the model and the rewards see them. All rows are read, so every one that cannot be used is found."""
    from grpo_core.cli import dataset_views

    flags = {"dataset": reference, "columns": columns, "system": system, "set_": set_, "model": model}
    recipe = _settings(flags)
    shown_model = None if model is None else recipe.model
    previews = [_preview(loaded, shown_model, rows) for loaded in _load(recipe, load_plugins(plugin).catalog)]
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

    prompts, warnings = (None, ()) if model is None else _rendered(loaded, model, rows)
    return {**dataset_views.preview_of(loaded, prompts, rows), "warnings": [*loaded.warnings, *warnings]}


def _rendered(loaded: LoadedSamples, model: ModelSettings, rows: int) -> tuple[list[tuple[str, int]], tuple[str, ...]]:
    """Text and length in tokens of the first prompts, and what to say about the template."""
    from grpo_core.data.prompts import render_prompts
    from grpo_core.model.tokenizer import load_tokenizer
    from grpo_core.model.vision import load_vision
    from grpo_core.recipe.paths import read_text_setting

    template = model.chat_template and read_text_setting(model.chat_template)
    model = model.model_copy(update={"chat_template": template})
    tokenizer = load_tokenizer(model)
    rendered = render_prompts(
        loaded.samples[:rows],
        tokenizer,
        max_prompt_tokens=None,
        over_long="drop",
        template_options=model.chat_template_options,
        vision=load_vision(model),
    )
    return [(prompt.text, len(prompt.token_ids)) for prompt in rendered.prompts], rendered.warnings
