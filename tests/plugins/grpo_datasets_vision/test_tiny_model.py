"""The tiny model that counts: it is warmed up on careless answers, and plain transformers loads its folder offline."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoTokenizer, PreTrainedTokenizerFast

import grpo_datasets_vision
from grpo_core.model.vision import load_vision
from grpo_core.recipe.schema import ModelSettings
from grpo_core.reward.builtin.think_answer import format_reward
from grpo_core.types import ImageRef
from grpo_datasets_vision.options import ClevrCountOptions
from grpo_datasets_vision.scenes.source import rows
from grpo_datasets_vision.tiny_model.__main__ import main
from grpo_datasets_vision.tiny_model.model import fresh_model
from grpo_datasets_vision.tiny_model.task import TASK, answer_text, careless, prompt_text
from grpo_datasets_vision.tiny_model.tokenizer import IMAGE_TOKENS, build_vision_tokenizer
from grpo_datasets_vision.tiny_model.warm_up import WarmUp, warm_up
from grpo_rewards_math.accuracy.multimodal import multimodal_accuracy
from tests.integration.runs import grpoctl

SHIPPED = Path(grpo_datasets_vision.__file__).parent / "recipes" / "clevr-count-tiny"
VISUAL_TOKENS = 16


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_vision_tokenizer()


@pytest.mark.parametrize("text", ["How many objects are there?", "你好 🎉 héllo", "<think></think><answer>10</answer>"])
def test_any_text_comes_back_as_it_was(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_placeholders_of_images_are_one_special_token_each(tokenizer: PreTrainedTokenizerFast) -> None:
    for token in IMAGE_TOKENS:
        assert tokenizer(token)["input_ids"] == [tokenizer.convert_tokens_to_ids(token)]
        assert tokenizer.decode(tokenizer(token)["input_ids"], skip_special_tokens=True) == ""


def test_the_chat_template_writes_parts_and_plain_texts(tokenizer: PreTrainedTokenizerFast) -> None:
    turns = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "U"}]},
    ]
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\nS<|im_end|>\n"
        "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>U<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("count", range(TASK.min_count, TASK.max_count + 1))
def test_a_right_answer_is_paid_by_both_rewards_of_the_recipe(count: int) -> None:
    solution = f"<answer> {count} </answer>"
    assert format_reward([answer_text(count)]) == [1.0]
    assert multimodal_accuracy([answer_text(count)], [solution]) == [1.0]
    assert multimodal_accuracy([answer_text(count + 1)], [solution]) == [0.0]


def test_the_careless_counter_is_right_one_time_in_four_and_else_says_too_little() -> None:
    random = Random(0)
    errors = Counter(8 - careless(8, random) for _ in range(4000))
    assert set(errors) == {0, 1, 2}
    assert 0.22 < errors[0] / 4000 < 0.28
    assert min(careless(TASK.min_count, random) for _ in range(100)) == TASK.min_count


def test_the_recipe_asks_what_the_model_was_warmed_up_on(tmp_path: Path) -> None:
    told = json.loads(grpoctl(tmp_path, "recipe", "explain", "clevr-count-tiny", "--json").stdout)
    options = {
        name.removeprefix("dataset.options."): setting["value"]
        for name, setting in told.items()
        if name.startswith("dataset.options.")
    }
    asked = ClevrCountOptions(**options)
    assert asked.model_copy(update={"rows": TASK.rows}) == TASK


def test_a_dry_run_shows_that_both_rewards_pay_the_right_answer(tmp_path: Path) -> None:
    few = ("--set", "dataset.options.rows=64", "--eval-rows", "8", "--steps", "1", "--output", "run")
    told = grpoctl(tmp_path, "train", "--recipe", "clevr-count-tiny", *few, "--dry-run").stdout
    assert "reward multimodal_accuracy: 1 on " in told
    assert "reward format_reward: 1 on " in told


def test_the_warm_up_lowers_the_loss_and_the_same_seed_gives_the_same_weights(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    losses: list[float] = []
    models = [fresh_model(tokenizer, seed=1) for _ in range(2)]
    for model in models:
        settings = WarmUp(updates=3, batch=4, pool=6, seed=1)
        warm_up(model, tokenizer, settings, lambda update, loss: losses.append(loss))
    assert losses[:3] == losses[3:]
    assert losses[2] < losses[0]
    assert all(torch.equal(a, b) for a, b in zip(*(model.parameters() for model in models), strict=True))


def test_a_fresh_model_leaves_the_global_random_state_alone(tokenizer: PreTrainedTokenizerFast) -> None:
    before = torch.random.get_rng_state()
    fresh_model(tokenizer, seed=1)
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_command_writes_a_folder_that_transformers_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tokenizer: PreTrainedTokenizerFast
) -> None:
    main([str(tmp_path / "made"), "--updates", "1", "--batch", "2", "--pool", "3", "--seed", "3"])
    assert "update 1/1" in capsys.readouterr().out
    told = (tmp_path / "made" / "README.md").read_text(encoding="utf-8")
    assert "--updates 1 --batch 2 --pool 3 --learning-rate 0.002 --seed 3" in told
    check_folder(tmp_path / "made", tokenizer)


def test_the_shipped_folder_loads_is_small_and_has_the_tokenizer_of_this_code(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    check_folder(SHIPPED, tokenizer)
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 3_000_000
    shipped = json.loads((SHIPPED / "tokenizer.json").read_text(encoding="utf-8"))
    assert shipped == json.loads(tokenizer.backend_tokenizer.to_str())


def check_folder(folder: Path, made_with: PreTrainedTokenizerFast) -> None:
    model = AutoModelForImageTextToText.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    vision = load_vision(ModelSettings(path=str(folder)))
    assert type(model).__name__ == "Qwen2VLForConditionalGeneration"
    assert tokenizer.chat_template == made_with.chat_template
    assert model.config.get_text_config().eos_token_id == model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert model.config.get_text_config().vocab_size == len(tokenizer)
    assert vision is not None
    (row,) = islice(rows(TASK, split="evaluation", seed=0), 1)
    image = row["image"]
    assert isinstance(image, bytes)
    refs = (ImageRef(source=image),)
    assert vision.tokens_of(refs[0]) == VISUAL_TOKENS
    turns = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": prompt_text("How many?")}]}]
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    ids = torch.tensor([vision.expand(tokenizer(text)["input_ids"], refs)])
    pixels = vision.process(refs).tensors
    with torch.no_grad():
        seen, other = (
            model(
                input_ids=ids,
                mm_token_type_ids=(ids == model.config.image_token_id).int(),
                **{**pixels, "pixel_values": values},
            ).logits
            for values in (pixels["pixel_values"], torch.zeros_like(pixels["pixel_values"]))
        )
    assert torch.isfinite(seen).all()
    assert not torch.equal(seen, other), "the picture makes no difference"
