"""The tiny model: its tokenizer writes any text, its demonstrations are well formed, and its folder loads offline."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

import grpo_rewards_math
from grpo_core.reward.builtin.think_answer import format_reward
from grpo_rewards_math.countdown.reward import countdown_reward
from grpo_rewards_math.countdown.source import puzzles, split_of
from grpo_rewards_math.countdown.wording import render
from grpo_rewards_math.tiny_model.__main__ import main
from grpo_rewards_math.tiny_model.countdown import COUNTDOWN
from grpo_rewards_math.tiny_model.demonstrations import TASK, answer_text, demonstrate
from grpo_rewards_math.tiny_model.lesson import WarmUp
from grpo_rewards_math.tiny_model.tokenizer import build_tokenizer, countdown_texts
from grpo_rewards_math.tiny_model.warm_up import fresh_model, warm_up

SHIPPED = Path(grpo_rewards_math.__file__).parent / "recipes" / "countdown-tiny"
TOKENIZER = build_tokenizer(countdown_texts())
TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs",)))


def tokens(text: str) -> list[str]:
    return TOKENIZER.convert_ids_to_tokens(TOKENIZER(text)["input_ids"])


@settings(deadline=None)
@given(TEXT)
def test_any_text_comes_back_as_it_was(text):
    ids = TOKENIZER(text)["input_ids"]
    assert TOKENIZER.decode(ids) == text
    assert all(0 <= token < len(TOKENIZER) for token in ids)


@pytest.mark.parametrize("text", ["你好 🎉 héllo", "<think> a\r\n</think> <answer>5 , 3</answer>", "a  b\t.", "\x00"])
def test_text_comes_back_with_its_tags_and_blanks_when_special_tokens_are_skipped(text):
    assert TOKENIZER.decode(TOKENIZER(text)["input_ids"], skip_special_tokens=True) == text


def test_a_digit_an_operator_and_a_tag_are_one_token_each():
    assert tokens("<think>12*(3-4)=7</think>") == ["<think>", *"12*(3-4)=7", "</think>"]


def test_end_tokens_are_special_and_tags_are_not():
    assert TOKENIZER.eos_token == "<|im_end|>"
    assert TOKENIZER.pad_token == "<|endoftext|>"
    assert set(TOKENIZER.all_special_tokens) == {"<|im_end|>", "<|endoftext|>"}
    assert TOKENIZER.decode(TOKENIZER("<|im_start|>a<|im_end|>")["input_ids"], skip_special_tokens=True) == "a"


def test_the_chat_template_writes_every_role_and_opens_the_assistants_turn():
    turns = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": "A"},
    ]
    text = TOKENIZER.apply_chat_template([*turns, turns[1]], tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
        "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_prompt_of_the_recipe_is_a_few_tokens():
    prompt = render(TASK, (15, 13, 12), 100)
    text = TOKENIZER.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False
    )
    assert len(TOKENIZER(text)["input_ids"]) <= 32


def demonstrations(careful_share: float, count: int = 100):
    random = Random(0)
    drawn = [puzzle for puzzle, _ in zip(puzzles(TASK, split="train", seed=0), range(count), strict=False)]
    return [(puzzle, demonstrate(puzzle, TASK, careful_share=careful_share, random=random)) for puzzle in drawn]


def right_answers(pairs) -> float:
    scores = [countdown_reward([shown.answer], [list(p.nums)], [p.target])[0] for p, shown in pairs]
    return sum(scores) / len(scores)


@pytest.mark.parametrize("careful_share", [0.0, 1.0])
def test_every_demonstration_is_well_formed_and_uses_the_numbers_shown(careful_share):
    for puzzle, shown in demonstrations(careful_share):
        assert format_reward([shown.answer]) == [1.0]
        numbers = shown.prompt.split(" = ")[0].split()
        assert sorted(map(int, numbers)) == sorted(puzzle.nums)


def test_careful_demonstrations_are_right_and_careless_ones_seldom():
    assert right_answers(demonstrations(1.0)) == 1.0
    assert 0.0 < right_answers(demonstrations(0.0)) < 0.4


def test_demonstrations_are_of_training_problems_only():
    assert {split_of(puzzle.nums, puzzle.target) for puzzle, _ in demonstrations(0.5)} == {"train"}


def test_an_answer_is_the_steps_and_then_the_expression():
    puzzle = next(puzzle for puzzle in puzzles(TASK, split="train", seed=0) if "*" in puzzle.solution)
    first, second = puzzle.steps
    assert answer_text(puzzle) == f"<think>{first} {second}</think><answer>{puzzle.solution}</answer>"


def test_the_warm_up_lowers_the_loss_and_the_same_seed_gives_the_same_weights():
    losses: list[float] = []
    models = [fresh_model(TOKENIZER, seed=1) for _ in range(2)]
    for model in models:
        warm_up(
            model, TOKENIZER, COUNTDOWN, WarmUp(updates=3, batch=4, seed=1), lambda update, loss: losses.append(loss)
        )
    assert losses[:3] == losses[3:]
    assert losses[2] < losses[0]
    assert all(torch.equal(a, b) for a, b in zip(*(model.parameters() for model in models), strict=True))


def test_a_fresh_model_leaves_the_global_random_state_alone():
    before = torch.random.get_rng_state()
    fresh_model(TOKENIZER, seed=1)
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_command_writes_a_folder_that_transformers_loads(tmp_path, capsys):
    main([str(tmp_path / "made"), "--updates", "1", "--batch", "2", "--seed", "3"])
    assert "update 1/1" in capsys.readouterr().out
    assert (
        "--updates 1 --batch 2 --learning-rate 0.004 --careful-share 0.6 --seed 3"
        in (tmp_path / "made" / "README.md").read_text()
    )
    check_folder(tmp_path / "made")


def test_the_shipped_folder_loads_is_small_and_has_the_tokenizer_of_this_code():
    check_folder(SHIPPED)
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 8_000_000
    shipped = json.loads((SHIPPED / "tokenizer.json").read_text(encoding="utf-8"))
    assert shipped == json.loads(TOKENIZER.backend_tokenizer.to_str())


def check_folder(folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    assert type(model).__name__ == "Qwen3ForCausalLM"
    assert tokenizer.chat_template == TOKENIZER.chat_template
    assert model.config.eos_token_id == model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.max_position_embeddings >= 256
    assert model.lm_head.weight is model.model.embed_tokens.weight
    with torch.no_grad():
        ids = tokenizer("Any text, 你好", return_tensors="pt")["input_ids"]
        assert torch.isfinite(model(input_ids=ids).logits).all()
