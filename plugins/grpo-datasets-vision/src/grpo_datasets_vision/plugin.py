"""What this distribution registers."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.api import DatasetSpec, RecipeSpec, hookimpl


@hookimpl
def grpo_dataset_preprocessors() -> Iterable[DatasetSpec]:
    """Questions about images with answers that can be checked."""
    yield DatasetSpec(
        name="clevr_count",
        summary="ClevrCount: how many objects does the image show? The question is extended by how to answer",
        target="grpo_datasets_vision.prompt:make_clevr_count",
        options="grpo_datasets_vision.options:ClevrCountOptions",
        source="grpo_datasets_vision.scenes.source:rows",
        hub_ids=("leonardPKU/clevr_cogen_a_train", "AI-ModelScope/clevr_cogen_a_train"),
    )
    yield DatasetSpec(
        name="geoqa",
        summary="GEOQA: geometry problems with their figure",
        target="grpo_datasets_vision.prompt:make",
        options="grpo_datasets_vision.options:PictureOptions",
        hub_ids=("leonardPKU/GEOQA_R1V_Train_8K", "AI-ModelScope/GEOQA_R1V_Train_8K"),
    )
    yield DatasetSpec(
        name="open_r1_multimodal",
        summary="Open-R1 multimodal: mathematical reasoning about figures, charts and maps, with verified answers",
        target="grpo_datasets_vision.prompt:make",
        options="grpo_datasets_vision.options:PictureOptions",
        hub_ids=("lmms-lab/multimodal-open-r1-8k-verified",),
    )


@hookimpl
def grpo_recipes() -> Iterable[RecipeSpec]:
    """Runs that work as they are."""
    yield RecipeSpec(
        name="clevr-count-tiny",
        summary="Counting in pictures with the embedded 0.6 M-parameter model: minutes on two CPU cores, no download",
        package="grpo_datasets_vision",
        path="recipes/clevr-count-tiny.yaml",
    )
