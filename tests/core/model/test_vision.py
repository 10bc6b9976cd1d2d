"""A model's own processor: tokens of images, pixels once for each content, and what cannot be read."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
import torch

from grpo_core.data.prompts import RenderedPrompts, render_prompts
from grpo_core.errors import DataError, RecipeError
from grpo_core.model import vision as module
from grpo_core.model.image_features import encode_images, position_rows, prompt_positions, tower_of
from grpo_core.model.load import load_model
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.model.vision import Vision, load_vision
from grpo_core.recipe.schema import ModelSettings
from grpo_core.types import ImageRef, Message, Sample
from tests.tiny_models import make_model_folder
from tests.vl_models import VL_FAMILIES, make_vl_folder


@pytest.fixture(scope="module", params=VL_FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vl_folder(request.param, tmp_path_factory.mktemp("vl") / request.param)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vl_folder("qwen2_vl", tmp_path_factory.mktemp("vl") / "qwen2_vl")


def image(width: int, height: int, shade: int = 0) -> ImageRef:
    """A picture that is not the same everywhere."""
    picture = PIL.Image.new("RGB", (width, height), (200, 40 + shade, 60))
    picture.paste((20, 90, 200 - shade), (width // 4, height // 4, width // 2 + 1, height // 2 + 1))
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return ImageRef(source=file.getvalue())


def sample(text: str, *images: ImageRef) -> Sample:
    return Sample(
        id="train-000001",
        messages=(Message(role="system", content="Be brief."), Message(role="user", content=text)),
        images=images,
    )


def rendered(folder: Path, *samples: Sample, **settings: Any) -> RenderedPrompts:
    model = ModelSettings(path=str(folder), **settings)
    found = load_vision(model)
    limits: dict[str, Any] = {"max_prompt_tokens": None, "over_long": "drop"}
    return render_prompts(samples, load_tokenizer(model), vision=found, **limits)


def vision_of(folder: Path, **settings: Any) -> Vision:
    found = load_vision(ModelSettings(path=str(folder), **settings))
    assert found is not None
    return found


def test_a_text_model_reads_no_images(tmp_path: Path) -> None:
    text_only = make_model_folder(tmp_path / "text")
    assert load_vision(ModelSettings(path=str(text_only))) is None
    with pytest.raises(DataError, match=r"train-000001: it has 1 image, and the model reads text only"):
        rendered(text_only, sample("<image>How many?", image(64, 64)))


def test_a_prompt_has_all_tokens_of_its_images_as_the_processor_makes_them(folder: Path) -> None:
    samples = [
        sample("<image>How many?", image(80, 64)),
        sample("Here <image> and there <image>?", image(120, 90), image(64, 200)),
        sample("no image"),
    ]
    vision = vision_of(folder)
    one, two, none = rendered(folder, *samples).prompts
    for prompt in (one, two):
        tokens = sum(vision.tokens_of(each) for each in prompt.sample.images)
        assert prompt.token_ids.count(vision.image_token_id) == tokens == vision.process(prompt.sample.images).tokens
        assert len(prompt.bare_ids) < len(prompt.token_ids)
        vision.require_same(prompt.text, prompt.sample.images, prompt.token_ids)
    assert none.bare_ids == ()
    assert not vision.reserved_ids.intersection(none.token_ids)


def test_what_is_encoded_once_gives_the_logits_of_the_models_own_forward(folder: Path) -> None:
    model_settings = ModelSettings(path=str(folder))
    vision, model = vision_of(folder), load_model(model_settings, torch.float32)
    prompts = rendered(
        folder,
        sample("<image>How many?", image(80, 64)),
        sample("no image"),
        sample("<image><image>Which?", image(64, 64, 9), image(90, 60, 30)),
    ).prompts
    inputs = [vision.process(prompt.sample.images) if prompt.sample.images else None for prompt in prompts]
    calls: list[int] = []
    hook = tower_of(model).register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        features = encode_images(model, inputs)
        assert calls == [1]
        hook.remove()
        for place, (prompt, pixels) in enumerate(zip(prompts, inputs, strict=True)):
            ids_1P = torch.tensor([prompt.token_ids])
            types = {"mm_token_type_ids": (ids_1P == vision.image_token_id).int()} if position_rows(model) == 3 else {}
            own = {} if pixels is None else {**pixels.tensors, **types}
            expected_PV = model(input_ids=ids_1P, **own).logits[0]
            positions_R1P = prompt_positions(model, prompt.token_ids, pixels)[:, None]
            found_PV = model(
                input_ids=ids_1P,
                position_ids=positions_R1P if len(positions_R1P) > 1 else positions_R1P[0],
                **features.arguments([place]),
            ).logits[0]
            torch.testing.assert_close(found_PV, expected_PV, rtol=0, atol=1e-4)


def test_gradients_through_leaves_reach_the_tower_as_they_would_through_the_graph(folder: Path) -> None:
    vision, model = vision_of(folder), load_model(ModelSettings(path=str(folder)), torch.float32)
    prompt = rendered(folder, sample("<image>How many?", image(80, 64))).prompts[0]
    ids_2P = torch.tensor([prompt.token_ids] * 2)
    positions_R1P = prompt_positions(model, prompt.token_ids, vision.process(prompt.sample.images))[:, None]
    positions = positions_R1P.expand(-1, 2, -1) if len(positions_R1P) > 1 else positions_R1P[0].expand(2, -1)

    def loss(arguments: dict[str, Any]) -> torch.Tensor:
        logits: torch.Tensor = model(input_ids=ids_2P, position_ids=positions, **arguments).logits
        return logits.float().log_softmax(-1)[:, -1, 5].sum()

    features = encode_images(model, [vision.process(prompt.sample.images)])
    loss(features.arguments([0, 0])).backward()
    direct = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()
    features = encode_images(model, [vision.process(prompt.sample.images)])
    leaves = features.leaves()
    loss(leaves.arguments([0, 0])).backward()
    torch.autograd.backward(features.tensors, [leaf.grad for leaf in leaves.tensors])
    for name, gradient in direct.items():
        found = model.get_parameter(name).grad
        torch.testing.assert_close(found, gradient, rtol=1e-4, atol=1e-6)
    assert any("vis" in name for name in direct)


def test_an_image_of_the_same_content_is_processed_once(qwen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vision, opened = vision_of(qwen), []
    original = module.open_image
    monkeypatch.setattr(module, "open_image", lambda each: opened.append(each) or original(each))
    first = vision.process([image(75, 70, 3)])
    assert vision.process([image(75, 70, 3)]) is first
    assert vision_of(qwen).process([image(75, 70, 3)]) is first
    assert len(opened) == 1


def test_a_placeholder_that_the_text_brings_itself_is_refused_by_sample(qwen: Path) -> None:
    own = r"train-000001: its prompt has 1 of the model's placeholder '<\|image_pad\|>', and the row has 0 images"
    with pytest.raises(DataError, match=own) as failure:
        rendered(qwen, sample("what is <|image_pad|>?"))
    assert "The text has it itself, and the row has no image" in str(failure.value.hint)
    with pytest.raises(DataError, match=r"train-000001: its prompt has '<\|video_pad\|>', which stands for images"):
        rendered(qwen, sample("<image> and <|video_pad|>?", image(64, 64)))


def test_a_row_without_images_keeps_the_word_for_one_as_text(qwen: Path) -> None:
    (prompt,) = rendered(qwen, sample("what does <image> mean?")).prompts
    assert "<image>" in prompt.text
    assert prompt.bare_ids == ()


def test_a_prompt_with_images_that_is_too_long_is_not_cut(qwen: Path) -> None:
    model = ModelSettings(path=str(qwen))
    with pytest.raises(DataError, match=r"those of 1 image included, and at most 20 are allowed"):
        render_prompts(
            [sample("<image>How many?", image(80, 64))],
            load_tokenizer(model),
            max_prompt_tokens=20,
            over_long="truncate",
            vision=load_vision(model),
        )


def test_where_every_prompt_is_too_long_for_its_images_they_are_to_be_bounded(qwen: Path) -> None:
    model = ModelSettings(path=str(qwen))
    rows = [sample("<image>How many?", image(80, 64))]
    with pytest.raises(DataError, match=r"no prompt is left: all 1 are longer than the 20 tokens") as caught:
        render_prompts(rows, load_tokenizer(model), max_prompt_tokens=20, over_long="drop", vision=load_vision(model))
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("or bound the images with model.max_pixels.")


@pytest.mark.parametrize("size", [(27, 28), (300, 20), (1, 1), (20, 300), (3, 100), (640, 480)])
def test_a_small_image_is_scaled_up_and_keeps_its_shape(qwen: Path, size: tuple[int, int]) -> None:
    vision, small = vision_of(qwen), image(*size)
    width, height = vision.resized(small).size
    assert width % 28 == height % 28 == 0
    assert 0.85 < (width / height) / (size[0] / size[1]) < 1.15
    assert vision.tokens_of(small) == width * height // 28**2 == vision.process([small]).tokens


def test_an_image_that_no_grid_fits_is_refused_by_sample(qwen: Path) -> None:
    with pytest.raises(DataError, match=r"train-000001: an image of 4000 x 4 pixels cannot be processed"):
        rendered(qwen, sample("<image>?", image(4000, 4)))


def test_the_processors_files_go_with_an_exported_model(qwen: Path, tmp_path: Path) -> None:
    vision_of(qwen).save(tmp_path)
    copied = json.loads((tmp_path / "preprocessor_config.json").read_text(encoding="utf-8"))
    assert copied == json.loads((qwen / "preprocessor_config.json").read_text(encoding="utf-8"))


def test_a_model_whose_processor_is_missing_says_so(qwen: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (bare / name).write_bytes((qwen / name).read_bytes())
    with pytest.raises(RecipeError, match=r"its image processor cannot be loaded"):
        load_vision(ModelSettings(path=str(bare)))


def test_more_pixels_than_allowed_are_scaled_down(qwen: Path) -> None:
    large = image(400, 300)
    vision = vision_of(qwen, max_pixels=4 * 56 * 56)
    width, height = vision.resized(large).size
    assert width * height <= 4 * 56 * 56
    assert vision.tokens_of(large) == width * height // 28**2 < vision_of(qwen).tokens_of(large)
    with pytest.raises(RecipeError, match=r"100 is too few: the model's images have at least \d+ pixels"):
        vision_of(qwen, max_pixels=100)


def test_models_of_text_need_no_pillow() -> None:
    code = (
        "import sys\n"
        "sys.modules['PIL'] = None\n"
        "import grpo_core.model.vision, grpo_core.rollout.backend, grpo_core.trainer.backend, grpo_core.loop.train\n"
        "assert not [name for name in sys.modules if 'image_processing' in name]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_processor_that_makes_other_tokens_of_a_whole_prompt_is_refused(qwen: Path) -> None:
    vision, (prompt,) = vision_of(qwen), rendered(qwen, sample("<image>How many?", image(80, 64))).prompts
    with pytest.raises(RecipeError, match=r"its processor makes \d+ tokens of a prompt with 1 image"):
        vision.require_same(prompt.text, prompt.sample.images, prompt.token_ids[:-1])
