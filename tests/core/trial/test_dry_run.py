"""`train --dry-run` calls each quick pure reward once, on a made-up completion of a real row."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from grpo_core.trial import dry_run
from tests.integration.runs import Ran, grpoctl
from tests.tiny_models import make_model_folder

REWARDS = """
import time

CALLS = []

def exact(completions, solution):
    CALLS.append((completions, solution))
    return [float(f"<answer>{s}</answer>" in text) for text, s in zip(completions, solution)]

def chats(completions):
    return [float(first(text) == "a") for text in completions]

def first(text):
    return text[0]["content"]

def wrong(completions):
    return ["good" for _ in completions]

def short(completions):
    return []

def slow(completions):
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            pass

def silent(completions):
    return None

def compared(completions):
    return [0.0, 1.0][:len(completions)]

compared.scope = "group"

async def judge(completions):
    raise AssertionError("called")

def chance(completions):
    raise AssertionError("called")

chance.pure = False
"""
PLUGIN = """
from grpo_core.api import RewardSpec, hookimpl

@hookimpl
def grpo_reward_functions():
    yield RewardSpec(name="counted", summary="s", target=f"{__file__}:counted")
    yield RewardSpec(name="elsewhere", summary="s", target=f"{__file__}:elsewhere", pure=True, runs_in="worker")
    yield RewardSpec(name="chemistry", summary="s", target=f"{__file__}:counted", pure=True, tasks=("chemistry",))

def counted(completions):
    raise AssertionError("called")

def elsewhere(completions):
    return [0.5 for _ in completions]
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dry")
    make_model_folder(folder / "model")
    rows = [{"query": "6*7?", "solution": "42", "task": "math"}, {"query": "6*8?", "solution": "48", "task": "math"}]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "mine.py").write_text(REWARDS, encoding="utf-8")
    (folder / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    return folder


def look(work: Path, *rewards: str, code: int = 0) -> Ran:
    return grpoctl(
        work,
        *("train", "--model", "./model", "--dataset", "rows.jsonl", "--rewards", ",".join(rewards), "--steps", "1"),
        *("--prompts-per-step", "1", "--max-completion-tokens", "8", "--plugin", "plugin.py", "--dry-run"),
        code=code,
    )


def told(ran: Ran) -> dict[str, str]:
    lines = [line.split(": ", 1) for line in ran.stdout.splitlines() if line.startswith("reward ")]
    return {name.removeprefix("reward "): text for name, text in lines}


def test_what_a_reward_gives_is_told_with_the_completion_and_the_row(work: Path) -> None:
    found = told(look(work, "./mine.py:exact", "format_reward", "./mine.py:silent", "elsewhere"))
    made_up = '"<think>made up</think>\\n<answer>42</answer>", made up for train-000000 ('
    assert found["exact"].startswith(f"1 on {made_up}")
    assert found["format_reward"].startswith(f"1 on {made_up}")
    assert found["silent"].startswith(f"None (it does not apply) on {made_up}")
    assert found["elsewhere"].startswith(f"0.5 on {made_up}")
    assert not (work / "runs").exists()


def test_what_may_do_more_than_look_is_not_called_and_the_reason_is_told(work: Path) -> None:
    names = [f"./mine.py:{name}" for name in ("judge", "chance", "compared")]
    assert told(look(work, *names, "counted", "chemistry")) == {
        "judge": "not called: it is async, as rewards are that ask a service",
        "chance": "not called: it says that it is not pure; where that is no matter, say so: chance.pure = True",
        "compared": "not called: it compares completions (scope group), and there is one",
        "counted": "not called: its plugin does not say that it is pure",
        "chemistry": "not called: no row is of its tasks",
    }


def test_rewards_that_fail_fail_the_dry_run_all_of_them_named(work: Path) -> None:
    ran = look(work, *(f"./mine.py:{name}" for name in ("chats", "wrong", "short", "exact")), code=4)
    assert told(ran)["exact"].startswith("1 on ")
    assert "error: a reward fails when it is called:" in ran.stderr
    assert "reward 'chats': raised TypeError: string indices must be integers" in ran.stderr
    assert "reward 'wrong': " in ran.stderr
    assert "reward 'short': " in ran.stderr
    assert "'exact'" not in ran.stderr


def test_a_reward_that_does_not_come_back_is_not_waited_for(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "_MOST_S", 0.2)
    before = signal.getsignal(signal.SIGALRM)
    assert told(look(work, "./mine.py:slow"))["slow"].startswith("gave nothing within 0.2 s on ")
    assert signal.getsignal(signal.SIGALRM) is before
