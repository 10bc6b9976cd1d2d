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
    """A run for a laptop, and the published ones."""
    yield RecipeSpec(
        name="clevr-count-tiny",
        summary="Counting in pictures with the embedded 0.6 M-parameter model: minutes on two CPU cores, no download",
        package="grpo_datasets_vision",
        path="recipes/clevr-count-tiny.yaml",
    )
    yield RecipeSpec(
        name="clevr-engines-smoke",
        summary="Images through both engines on a CPU: two vLLM servers, two ZeRO-3 processes, 10 steps",
        package="grpo_datasets_vision",
        path="recipes/clevr-engines-smoke.yaml",
    )
    yield RecipeSpec(
        name="clevr-count",
        summary="ClevrCount with Qwen2.5-VL-3B-Instruct on eight GPUs: vLLM and ZeRO-3",
        package="grpo_datasets_vision",
        path="recipes/clevr-count.yaml",
    )
    yield RecipeSpec(
        name="geoqa",
        summary="GEOQA with Qwen2.5-VL-3B-Instruct on eight GPUs: vLLM and ZeRO-3",
        package="grpo_datasets_vision",
        path="recipes/geoqa.yaml",
    )
    yield RecipeSpec(
        name="open-r1-multimodal",
        summary="Open-R1 multimodal with Qwen2.5-VL-3B-Instruct on eight GPUs: vLLM and ZeRO-3",
        package="grpo_datasets_vision",
        path="recipes/open-r1-multimodal.yaml",
    )
