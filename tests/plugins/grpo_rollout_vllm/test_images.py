"""Images on their way to vLLM: once a prompt, with one placeholder each, and the answer must be of the same prompt."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from pathlib import Path

import PIL.Image
import pytest

from grpo_core.backends import ModelSettings
from grpo_core.data.prompts import render_prompts
from grpo_core.errors import RolloutError
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.model.vision import load_vision
from grpo_core.rollout.stop import CompletionText
from grpo_core.types import ImageRef, Message, RolloutRequest, Sample, SamplingParams
from grpo_rollout_vllm.answers import group_of, payload_of
from grpo_rollout_vllm.images import PromptImages, processor_arguments
from grpo_rollout_vllm.launch import server_command
from tests.tiny_models import END_ID, make_model_folder, make_tokenizer
from tests.vl_models import encoded_picture, make_vl_folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelSettings:
    return ModelSettings(path=str(make_vl_folder("qwen2_vl", tmp_path_factory.mktemp("vl") / "model")))


def request(model: ModelSettings, *sizes: tuple[int, int]) -> RolloutRequest:
    images = tuple(ImageRef(source=encoded_picture(seed, size)) for seed, size in enumerate(sizes))
    asked = Message(role="user", content="<image>" * len(images) + "How many?")
    sample = Sample(id="train-000003", messages=(asked,), images=images)
    rendered = render_prompts(
        [sample], load_tokenizer(model), max_prompt_tokens=None, over_long="drop", vision=load_vision(model)
    )
    (prompt,) = rendered.prompts
    return RolloutRequest(
        sample=sample,
        prompt_text=prompt.text,
        prompt_ids=prompt.token_ids,
        bare_prompt_ids=prompt.bare_ids,
        n=4,
        params=SamplingParams(max_tokens=2),
        seed=1,
    )


def answer(prompt_ids: tuple[int, ...]) -> dict[str, object]:
    choice = {
        "index": 0,
        "finish_reason": "length",
        "token_ids": [65, 66],
        "weight_versions": [{"version": "w"}],
        "logprobs": {"content": [{"logprob": -1.0}, {"logprob": -1.0}]},
    }
    return {"prompt_token_ids": list(prompt_ids), "choices": [choice]}


def test_a_prompt_goes_with_its_images_once_for_all_completions(model: ModelSettings) -> None:
    asked = request(model, (80, 64), (333, 90))
    vision = load_vision(model)
    assert vision is not None
    body = payload_of(asked, [END_ID], PromptImages(model))
    assert body["token_ids"] == list(asked.bare_prompt_ids)
    assert body["token_ids"].count(vision.image_token_id) == 2
    assert body["sampling_params"]["n"] == 4
    assert body["return_token_ids"]
    assert set(body["sampling_params"]["logit_bias"]) == vision.reserved_ids
    sent = [
        PIL.Image.open(io.BytesIO(base64.b64decode(part["url"].partition(",")[2]))) for part in body["content_parts"]
    ]
    assert [picture.size for picture in sent] == [vision.resized(image).size for image in asked.sample.images]
    assert len({part["uuid"] for part in body["content_parts"]}) == 2


def test_a_prompt_without_images_goes_as_ever(model: ModelSettings) -> None:
    asked = request(model)
    body = payload_of(asked, [END_ID], PromptImages(model))
    assert body["token_ids"] == list(asked.prompt_ids)
    assert "content_parts" not in body


def test_another_number_of_tokens_on_the_other_side_names_both(model: ModelSettings) -> None:
    asked, text = request(model, (80, 64)), CompletionText(make_tokenizer(), {END_ID})
    group = group_of(replace(asked, n=1), answer(asked.prompt_ids), label="w", version=1, text=text)
    assert group.completions[0].token_ids == (65, 66)
    count = len(asked.prompt_ids)
    wanted = rf"'train-000003': the vLLM server makes {count + 1} tokens .*1 image, and the run makes {count}\n"
    with pytest.raises(RolloutError, match=wanted):
        group_of(asked, answer((*asked.prompt_ids, 1)), label="w", version=1, text=text)


def test_servers_are_told_the_bound_of_pixels(model: ModelSettings, tmp_path: Path) -> None:
    bounded = model.model_copy(update={"max_pixels": 12544})
    assert processor_arguments(bounded) == {"size": {"shortest_edge": 3136, "longest_edge": 12544}}
    command = server_command(bounded, host="h", port=1, arguments=())
    told = json.loads(command[command.index("--mm-processor-kwargs") + 1])
    assert told == {"size": {"shortest_edge": 3136, "longest_edge": 12544}}
    text_only = ModelSettings(path=str(make_model_folder(tmp_path / "text")), max_pixels=12544)
    assert "--mm-processor-kwargs" not in server_command(text_only, host="h", port=1, arguments=())
    assert PromptImages(text_only).sampling() == {}
