"""The tiny model of two tasks: well-formed demonstrations, mistakes where they are meant, a folder that loads."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

import grpo_rewards_code
from grpo_core.reward.builtin.think_answer import format_reward
from grpo_rewards_code.basics import source as code_source
from grpo_rewards_code.basics.operations import OPERATIONS
from grpo_rewards_code.basics.testing import solution_of
from grpo_rewards_code.tiny_model.__main__ import main
from grpo_rewards_code.tiny_model.demonstrations import (
    CODE,
    MATH,
    NEIGHBOURS,
    batches,
    demonstrate_code,
    demonstrate_math,
    texts,
)
from grpo_rewards_code.tiny_model.lesson import MULTITASK
from grpo_rewards_math.basics import source as math_source
from grpo_rewards_math.tiny_model.folder import describe
from grpo_rewards_math.tiny_model.lesson import Demonstration, WarmUp
from grpo_rewards_math.tiny_model.tokenizer import build_tokenizer

SHIPPED = Path(grpo_rewards_code.__file__).parent / "recipes" / "multitask-math-code"


@cache
def calculations():
    return list(islice(math_source.problems(MATH, split="train", seed=0), 200))


@cache
def functions():
    return [problem.function for problem in islice(code_source.problems(CODE, split="train", seed=0), 200)]


def answer_of(shown: Demonstration) -> str:
    (answer,) = re.findall(r"<answer>(.*)</answer>", shown.answer, re.DOTALL)
    return str(answer)


@pytest.mark.parametrize("careful_share", [0.0, 1.0])
def test_every_demonstration_is_well_formed(careful_share: float) -> None:
    random = Random(0)
    shown = [demonstrate_math(each, careful_share, random) for each in calculations()]
    shown += [demonstrate_code(each, careful_share, random) for each in functions()]
    assert format_reward([each.answer for each in shown]) == [1.0] * len(shown)


def test_careful_demonstrations_are_right() -> None:
    for problem in calculations():
        assert answer_of(demonstrate_math(problem, 1.0, Random(0))) == problem.solution
    for function in functions():
        shown = answer_of(demonstrate_code(function, 1.0, Random(0)))
        assert shown == f"\n```python\n{solution_of(function, 'call')}\n```\n"


def test_careless_demonstrations_of_both_tasks_are_right_now_and_then() -> None:
    right = [answer_of(demonstrate_math(each, 0.0, Random(0))) == each.solution for each in calculations()]
    assert 0.3 < sum(right) / len(right) < 0.8
    same = [demonstrate_code(each, 0.0, Random(0)) == demonstrate_code(each, 1.0, Random(0)) for each in functions()]
    assert 0.3 < sum(same) / len(same) < 0.8


def test_an_operation_and_its_neighbour_fit_the_same_place_and_no_neighbour_is_mistaken_itself() -> None:
    by_words = {operation.words: operation for operation in OPERATIONS}
    for words, neighbour in NEIGHBOURS.items():
        one, other = by_words[words], by_words[neighbour]
        assert (one.takes, one.gives, one.numbers is None) == (other.takes, other.gives, other.numbers is None)
        assert one.code != other.code
        assert neighbour not in NEIGHBOURS


@pytest.mark.slow
def test_a_batch_is_half_of_either_task_and_the_seed_decides_it() -> None:
    settings = WarmUp(batch=10, careful_share=0.4, seed=3)
    stream = batches(settings)
    first, second = next(stream), next(stream)
    assert [each.prompt.startswith(("list", "string", "arithmetic")) for each in first] == [False] * 5 + [True] * 5
    assert first != second
    assert next(batches(settings)) == first


def test_prompts_and_answers_take_few_tokens() -> None:
    tokenizer = build_tokenizer(texts(), vocabulary=MULTITASK.vocabulary)
    random = Random(0)
    shown = [demonstrate_code(each, 1.0, random) for each in functions()]
    assert max(len(tokenizer(each.answer)["input_ids"]) for each in shown) < 96
    assert max(len(tokenizer(each.prompt)["input_ids"]) for each in shown) < 40


@pytest.mark.slow
def test_the_command_writes_a_folder_that_transformers_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(tmp_path / "made"), "--updates", "1", "--batch", "2", "--seed", "3"])
    assert "update 1/1" in capsys.readouterr().out
    assert "--updates 1 --batch 2" in (tmp_path / "made" / "README.md").read_text(encoding="utf-8")
    AutoModelForCausalLM.from_pretrained(tmp_path / "made", local_files_only=True)


def test_the_shipped_folder_loads_is_small_and_has_the_tokenizer_of_this_code() -> None:
    model = AutoModelForCausalLM.from_pretrained(SHIPPED, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED, local_files_only=True)
    assert sum(parameter.numel() for parameter in model.parameters()) < 1_000_000
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 4_000_000
    assert model.config.vocab_size == len(tokenizer)
    built = build_tokenizer(texts(), vocabulary=MULTITASK.vocabulary).backend_tokenizer.to_str()
    assert json.loads((SHIPPED / "tokenizer.json").read_text(encoding="utf-8")) == json.loads(built)
    said = describe(model, MULTITASK, MULTITASK.defaults)
    assert (SHIPPED / "README.md").read_text(encoding="utf-8") == said
