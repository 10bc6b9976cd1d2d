"""Rewards of other trainers are recognised, and the lines that they are told to write make them work; honest rewards
pass, however much they look like those."""

from __future__ import annotations

import asyncio
import inspect
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import GrpoError, RewardError
from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.specs import RewardSpec
from grpo_core.plugins.targets import build_target, load_target
from grpo_core.reward.binding import bind
from grpo_core.reward.foreign import refuse_foreign
from grpo_core.types import BuildContext
from tests.core.reward import foreign_rewards, rewards_of_a_user

FILE = Path(foreign_rewards.__file__)
COLUMNS = ("solution", "ground_truth", "answer")
FORMS = {
    "format_reward_func": "reads `completion[0]['content']`: chats, as TRL gives them",
    "reward_func": "reads `c[-1]['content']`",
    "accuracy_reward": "reads `completion[0]['content']`",
    "cosine": "reads `completion[0]['content']`",
    "correctness_reward_func": "reads `completion[0]['content']` and `prompts[0][-1]['content']`",
    "in_a_loop": "reads `completion[0].get`",
    "by_position": "reads `completions[i][0]['content']`",
    "every_message": "reads `message['content']`",
    "awaited": "reads `completion[0]['content']`",
    "an_object": "reads `completion[0]['content']`",
    "a_partial": "reads `c[-1]['content']`",
    "MathAccuracy": "is the class MathAccuracy, as ms-swift's reward plugins are",
    "NeedsArguments": "is the class NeedsArguments",
    "Conversational": "is the class Conversational",
    "compute_score": "is written for verl, which calls it for one answer at a time",
    "gsm8k_score": "is written for verl, which calls it for one answer at a time",
    "compute_scores": "is written for verl's batches",
    "openrlhf": "is written for OpenRLHF",
    "openrlhf_plain": "is written for OpenRLHF",
}
HONEST = (
    *("takes_both", "returns_early", "catches", "catches_in_a_helper", "by_a_switch", "by_an_early_switch"),
    *("wraps_them_itself", "wraps_one_itself", "reads_messages", "reads_a_column", "the_same_name_twice", "parses"),
    *("only_where_it_may", "skips", "filtered", "ground_truth_and_text", "labels_alone", "shortest"),
)


def refused(
    function: object, name: str = "mine", target: str = "mine:mine", columns: Any = COLUMNS
) -> GrpoError | None:
    try:
        refuse_foreign(function, name=name, target=target, columns=columns, renames={})
    except RewardError as error:
        return error
    return None


@pytest.mark.parametrize("name", FORMS)
def test_a_reward_of_another_trainer_is_told_whose_form_it_has(name: str) -> None:
    target = f"{FILE}:{name}"
    error = refused(load_target(target), name, target)
    assert error is not None
    assert error.message.startswith(f"reward '{name}' {FORMS[name]}")
    assert error.hint is not None
    assert error.hint.startswith("Write this into a file of your own beside it, and name that: ./wrapped.py:my_reward")


PROMPTS = ["<user>6*7?"]
VALUES: dict[str, Any] = {
    "completions": ["the answer is 42"],
    "prompts": PROMPTS,
    "messages": [[{"role": "user", "content": "6*7?"}]],
    "solution": ["42"],
    "ground_truth": ["42"],
    "answer": ["42"],
}


@pytest.mark.parametrize("name", [name for name in FORMS if name != "Conversational"])
def test_the_lines_that_it_is_told_to_write_make_it_a_reward(name: str, tmp_path: Path) -> None:
    place = shutil.copy(FILE, tmp_path / f"rewards_{name}.py")
    target = f"{place}:{name}"
    error = refused(load_target(target), name, target)
    assert error is not None
    lines = [line.removeprefix("    ") for line in (error.hint or "").splitlines()[1:]]
    assert len(lines) <= 5
    (tmp_path / "wrapped.py").write_text("\n".join(lines), encoding="utf-8")
    reward: Any = load_target(f"{tmp_path}/wrapped.py:my_reward")
    assert refused(reward) is None
    binding = bind(reward, name="mine", columns=COLUMNS)
    given = {key: VALUES[key] for key in VALUES if key in {*binding.reserved, *binding.columns}}
    scores = asyncio.run(reward(**given)) if inspect.iscoroutinefunction(reward) else reward(**given)
    assert [type(score) for score in scores] == [float]


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_reward_that_looks_like_one_passes(name: str) -> None:
    function: Any = load_target(f"{FILE}:{name}")
    assert refused(function) is None
    if name not in ("reads_a_column", "the_same_name_twice", "parses"):
        names = inspect.signature(function).parameters
        given = {"data_source": ["a"], "labels": ["42"], **VALUES}
        assert len(function(**{key: given[key] for key in names if key in given})) == 1


def test_columns_of_their_names_make_a_form_ours() -> None:
    columns = ("solution_str", "ground_truth", "queries", "labels")
    assert refused(foreign_rewards.columns_of_those_names, columns=columns) is None
    assert refused(foreign_rewards.compute_score, columns=columns) is None
    refuse_foreign(
        foreign_rewards.gsm8k_score,
        name="a",
        target="a:b",
        columns=("text", "ground_truth"),
        renames={"solution_str": "text"},
    )


def test_every_installed_reward_and_every_reward_of_these_tests_passes() -> None:
    for entry in PluginHost.load().catalog.entries("reward"):
        assert isinstance(entry.spec, RewardSpec)
        try:
            function = build_target(entry.spec.target, entry.spec.options, {}, BuildContext())
        except GrpoError:
            continue  # it needs options
        assert refused(function, columns=()) is None, entry.qualified_name
    for name, function in vars(rewards_of_a_user).items():
        if inspect.isfunction(function) and function.__module__ == rewards_of_a_user.__name__:
            assert refused(function, columns=()) is None, name


def test_every_reward_of_the_pages_passes() -> None:
    docs = Path(__file__).parents[3] / "docs"
    seen = 0
    for page in docs.glob("*.md"):
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            if "def " in block and "completions" in block:
                found: dict[str, Any] = {}
                try:
                    exec(block, found)  # noqa: S102  our own pages
                except Exception:  # noqa: BLE001  a fragment
                    continue
                for name, function in found.items():
                    if inspect.isfunction(function):
                        seen += 1
                        assert refused(function, columns=()) is None, f"{page.name}: {name}"
    assert seen


def test_what_is_no_reward_at_all_is_left_to_the_binding() -> None:
    for thing in (3, "text", int, object, print, dict):
        assert refused(thing) is None
