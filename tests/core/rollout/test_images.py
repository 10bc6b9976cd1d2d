"""Prompts with images: once through the tower for all completions, as likely as the model says itself."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_core.data.prompts import render_prompts
from grpo_core.errors import RolloutError
from grpo_core.model.image_features import own_arguments, tower_of
from grpo_core.model.load import load_model
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.model.vision import Vision, load_vision
from grpo_core.recipe.schema import ModelSettings
from grpo_core.rollout.choose import Ways
from grpo_core.rollout.forward import decoding
from grpo_core.rollout.prompts import read_prompts
from grpo_core.types import ImageRef, Message, RolloutGroup, RolloutRequest, Sample, SamplingParams
from tests.core.rollout.make import backend
from tests.vl_models import VL_FAMILIES, encoded_picture, make_vl_folder

QUESTIONS = (
    ("<image>How many?", (1,)),
    ("No image here, and more to read", ()),
    ("Here <image> and there <image>?", (2, 3)),
)
SIZES = {1: (80, 64), 2: (120, 90), 3: (64, 200)}


class Place:
    """A model that reads images, and requests for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = ModelSettings(path=str(folder))
        self.model = load_model(self.settings, torch.float32)
        vision = load_vision(self.settings)
        assert vision is not None
        self.vision: Vision = vision

    def requests(self, *, n: int = 4, **params: Any) -> list[RolloutRequest]:
        samples = [
            Sample(
                id=f"train-{place}",
                messages=(Message(role="user", content=text),),
                images=tuple(ImageRef(source=encoded_picture(seed, SIZES[seed])) for seed in seeds),
            )
            for place, (text, seeds) in enumerate(QUESTIONS)
        ]
        rendered = render_prompts(
            samples, load_tokenizer(self.settings), max_prompt_tokens=None, over_long="drop", vision=self.vision
        )
        return [
            RolloutRequest(
                sample=prompt.sample,
                prompt_text=prompt.text,
                prompt_ids=prompt.token_ids,
                bare_prompt_ids=prompt.bare_ids,
                n=n,
                params=SamplingParams(**{"max_tokens": 6, **params}),
                seed=seed,
            )
            for seed, prompt in enumerate(rendered.prompts)
        ]

    def generate(self, requests: list[RolloutRequest], **options: Any) -> list[RolloutGroup]:
        rollout = backend(self.folder, **options)
        rollout.share(self.model, 1)
        return sorted(rollout.generate(requests), key=lambda group: group.sample.id)

    @torch.no_grad()
    def own_logprobs(self, group: RolloutGroup, token_ids: tuple[int, ...]) -> torch.Tensor:
        """Of a completion, by the model's own forward, which runs the tower over the images itself."""
        ids = group.request.prompt_ids
        ids_1T = torch.tensor([ids + token_ids])
        images = group.sample.images
        own = own_arguments(self.model, ids_1T, [self.vision.process(images)]) if images else {}
        logits_TV = self.model(ids_1T, use_cache=False, **own).logits[0, len(ids) - 1 : -1]
        return logits_TV.log_softmax(-1).gather(-1, torch.tensor(token_ids)[:, None])[:, 0]


@pytest.fixture(scope="module", params=VL_FAMILIES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(make_vl_folder(request.param, tmp_path_factory.mktemp("vl") / request.param))


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(make_vl_folder("qwen2_vl", tmp_path_factory.mktemp("vl") / "qwen2_vl"))


def test_what_is_drawn_is_as_likely_as_the_models_own_forward_says(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="grpo_core"):
        groups = place.generate(place.requests())
    assert "decodes with shared prefixes" in caplog.text
    for group in groups:
        assert len({completion.token_ids for completion in group.completions}) > 1
        for completion in group.completions:
            found = torch.tensor(completion.sampling_logprobs)
            torch.testing.assert_close(found, place.own_logprobs(group, completion.token_ids), rtol=0, atol=2e-5)


def test_greedy_tokens_are_those_of_generate(place: Place) -> None:
    for group in place.generate(place.requests(n=1, temperature=0.0)):
        (completion,) = group.completions
        ids_1P = torch.tensor([group.request.prompt_ids])
        images = group.sample.images
        own = own_arguments(place.model, ids_1P, [place.vision.process(images)]) if images else {}
        with torch.no_grad():
            expected = place.model.generate(
                ids_1P,
                attention_mask=torch.ones_like(ids_1P),
                max_new_tokens=6,
                do_sample=False,
                suppress_tokens=sorted(place.vision.reserved_ids),
                **own,
            )
        said = expected[0, ids_1P.shape[1] :].tolist()
        assert list(completion.token_ids) == said[: len(completion.token_ids)]


def test_the_tower_sees_each_image_once_for_all_completions(place: Place) -> None:
    rows: list[int] = []
    tower = tower_of(place.model)
    requests = place.requests(n=6)
    place.generate(requests)  # compares the ways to decode, with forwards of their own
    rollout = backend(place.folder)
    rollout.share(place.model, 1)
    list(rollout.generate(requests))
    hook = tower.register_forward_hook(
        lambda _, args, more, output: rows.append(len((args or tuple(more.values()))[0])), with_kwargs=True
    )
    try:
        list(rollout.generate(requests))
    finally:
        hook.remove()
    inputs = [place.vision.process(each.sample.images) for each in requests if each.sample.images]
    pixels = [each.tensors["pixel_values"] for each in inputs]
    assert rows == [sum(each.shape[1] if each.ndim == 5 else each.shape[0] for each in pixels)]


@pytest.mark.parametrize("way", [0, 1, 3])
def test_every_way_to_decode_reads_images(place: Place, way: int) -> None:
    """Shared prefixes, its own cache, whole forwards: one after the other, in passes of one prompt each."""
    requests = place.requests(n=2)
    ways = Ways(place.model, prefill_tokens=40)
    with decoding(place.model):
        prompts = read_prompts(place.model, requests, place.vision)
        decoder = ways.make(way)(4)
        logits = decoder.prefill(prompts, [2, 2, 2])
        sequences = [list(request.prompt_ids) for request in requests for _ in range(2)]
        tokens = [65, 66, 67, 68, 69, 70]
        sequences = [[*sequence, token] for sequence, token in zip(sequences, tokens, strict=True)]
        logits = decoder.step(torch.tensor(tokens))
        decoder.keep([5, 2, 0])
        sequences = [[*sequences[row], 71] for row in (5, 2, 0)]
        logits = decoder.step(torch.tensor([71, 71, 71]))
        for row, (sequence, asked) in enumerate(zip(sequences, (2, 1, 0), strict=True)):
            ids_1T = torch.tensor([sequence])
            images = requests[asked].sample.images
            own = own_arguments(place.model, ids_1T, [place.vision.process(images)]) if images else {}
            expected = place.model(ids_1T, use_cache=False, **own).logits[0, -1].log_softmax(-1)
            torch.testing.assert_close(logits[row].log_softmax(-1), expected, rtol=0, atol=2e-5)


def test_a_copy_of_the_weights_reads_images_as_the_shared_model_does(qwen: Place) -> None:
    requests = qwen.requests(n=2)
    rollout = backend(qwen.folder)
    rollout.load_weights(((name, value.detach()) for name, value in qwen.model.state_dict().items()), 1)
    copied = sorted(rollout.generate(requests), key=lambda group: group.sample.id)
    assert [group.completions for group in copied] == [group.completions for group in qwen.generate(requests)]


@pytest.mark.parametrize("max_sequences", [512, 4])  # all in one wave; one wave each
def test_images_at_the_places_of_a_text_are_found_out_whichever_wave_has_them(
    qwen: Place, monkeypatch: pytest.MonkeyPatch, max_sequences: int
) -> None:
    def as_in_a_text(model: Any, ids: Any, inputs: Any) -> torch.Tensor:
        return torch.arange(len(ids)).expand(3, -1)

    monkeypatch.setattr("grpo_core.rollout.prompts.prompt_positions", as_in_a_text)
    with pytest.raises(RolloutError, match=r"encoded once: with whole forwards its log-probabilities are .* nats off"):
        qwen.generate(shortest_is_text(qwen.requests()), max_sequences=max_sequences)


def test_the_ways_to_decode_are_compared_once_on_texts_and_once_on_images(
    qwen: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    choose = Ways.choose

    def counted(ways: Ways, prompts: Any) -> int:
        seen.append(any(prompts.pixels))
        return choose(ways, prompts)

    monkeypatch.setattr(Ways, "choose", counted)
    rollout = backend(qwen.folder, max_sequences=4)
    for version in (1, 2):
        rollout.share(qwen.model, version)
        list(rollout.generate(shortest_is_text(qwen.requests())))
    assert seen == [False, True]


def shortest_is_text(requests: list[RolloutRequest]) -> list[RolloutRequest]:
    """The text cut, so that it is decoded before the prompts with images."""
    return [each if each.sample.images else replace(each, prompt_ids=each.prompt_ids[:4]) for each in requests]


def test_tokens_that_stand_for_images_are_never_drawn(qwen: Place) -> None:
    weight = qwen.model.get_output_embeddings().weight
    kept = weight.detach().clone()
    reserved = sorted(qwen.vision.reserved_ids)
    try:
        with torch.no_grad():
            first, second = reserved
            weight[second] = -weight[first]  # one of the two is positive, whatever is read
            rows = [row for row in range(len(weight)) if row not in reserved]
            weight[rows] *= 1e-3  # all other logits near 0: the largest is a reserved token's
        for params in ({}, {"temperature": 0.0}, {"top_p": 0.9}, {"repetition_penalty": 1.3}):
            for group in qwen.generate(qwen.requests(n=8, **params)):
                for completion in group.completions:
                    assert not set(completion.token_ids) & set(reserved)
                    found = torch.tensor(completion.sampling_logprobs)
                    expected = qwen.own_logprobs(group, completion.token_ids)
                    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)
    finally:
        with torch.no_grad():
            weight.copy_(kept)


def test_an_image_that_changed_since_the_prompt_was_made_is_an_error(qwen: Place) -> None:
    asked = qwen.requests()[0]
    other = replace(asked.sample, images=(ImageRef(source=encoded_picture(9, (224, 224))),))
    with pytest.raises(
        RolloutError, match=r"sample 'train-0': its prompt has \d+ visual tokens, and its 1 image \d+"
    ) as failure:
        qwen.generate([replace(asked, sample=other)])
    assert failure.value.hint == "did an image file change since the run began?"


def test_a_prompt_without_images_that_has_their_token_is_told_apart_from_a_changed_file(qwen: Place) -> None:
    asked = qwen.requests()[0]
    with pytest.raises(RolloutError, match=r"its prompt has \d+ visual tokens, and its 0 images 0") as failure:
        qwen.generate([replace(asked, sample=replace(asked.sample, images=()))])
    assert failure.value.hint == "its text has the model's own token for an image; write something else in its place"
