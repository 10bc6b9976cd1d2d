"""With torchvision, transformers takes other image processors than without; what the model sees is the same.

In the engines' environment, which has torchvision; the default one has none.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from grpo_core.model.vision import load_vision
from grpo_core.recipe.schema import ModelSettings
from grpo_core.types import ImageRef
from tests.vl_models import VL_FAMILIES, VlFamily, encoded_picture, make_vl_folder

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("default")]
SIZES = ((80, 64), (333, 90), (27, 28), (64, 200))


@pytest.mark.parametrize("family", VL_FAMILIES)
def test_pixels_and_tokens_are_those_that_pil_gives(family: VlFamily, tmp_path: Path) -> None:
    vision = load_vision(ModelSettings(path=str(make_vl_folder(family, tmp_path / family))))
    assert vision is not None
    with_torchvision = vision._processor.image_processor
    assert not type(with_torchvision).__name__.endswith("Pil")
    of_pil = getattr(transformers, f"{type(with_torchvision).__name__}Pil")
    settings = {name: value for name, value in with_torchvision.to_dict().items() if not name.endswith("_type")}
    other = of_pil(**settings)
    for seed, size in enumerate(SIZES):
        image = ImageRef(source=encoded_picture(seed, size))
        found = vision.process([image])
        expected = other(images=[[vision.resized(image)]], return_tensors="pt")
        assert found.tensors["pixel_values"].shape == expected["pixel_values"].shape
        if family.startswith("qwen"):  # brought to the grid before, so that neither resizes
            torch.testing.assert_close(found.tensors["pixel_values"], expected["pixel_values"], rtol=0, atol=1e-5)
        assert found.tokens == vision.tokens_of(image)


def test_an_auto_processor_reads_an_exported_folder(tmp_path: Path) -> None:
    folder = make_vl_folder("qwen2_vl", tmp_path / "model")
    processor = transformers.AutoProcessor.from_pretrained(folder)
    assert type(processor).__name__ == "Qwen2VLProcessor"
