"""`grpoctl rewards list`: what is registered, and how each reward is called."""

from __future__ import annotations

from tests.core.cli.rewards.running import facts, rewards


def test_list_shows_what_is_registered(plugin: str) -> None:
    shown = rewards("list", "--plugin", plugin).stdout
    line = next(line for line in shown.splitlines() if line.startswith("agrees; (consents)"))
    assert line.split()[2:] == ["polls.py", "one", "sample", "worker,", "2.5", "s", "polls", "1.0", "for", "[yes]"]
    assert "needs no-such-engine>=3, which is not installed" in shown


def test_list_as_json_says_how_each_is_called(plugin: str) -> None:
    by_name = {each["qualified_name"]: each for each in facts("list", "--plugin", plugin)}
    assert by_name["polls.py/agrees"] == {
        "name": "agrees",
        "qualified_name": "polls.py/agrees",
        "distribution": "polls.py",
        "version": "(file)",
        "summary": "1.0 for [yes]",
        "aliases": ["consents"],
        "scope": "sample",
        "runs_in": "worker",
        "budget_s": 2.5,
        "tasks": ["polls"],
        "pure": False,
        "verifies": False,
        "missing_requirements": [],
        "cases": None,
    }
    assert by_name["grpo-core/format_reward"]["cases"].endswith("format_reward.jsonl")


def test_list_says_which_columns_a_reward_takes_when_asked(plugin: str) -> None:
    by_name = {each["name"]: each["columns"] for each in facts("list", "--columns", "--plugin", plugin)}
    assert by_name["countdown_reward"]["required"] == ["nums", "target"]
    assert by_name["agrees"]["takes_rest"] is True
    assert by_name["heavy"]["unknown"].startswith("'heavy' needs no-such-engine")
    shown = rewards("list", "--columns", "--plugin", plugin).stdout
    assert "nums; target" in shown
    assert "unknown: 'heavy' needs" in shown
    assert "…" in shown
