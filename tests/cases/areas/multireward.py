"""Cases of the area `multireward`: each kind, known by its keys, has its own check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.cases import by_command, by_rewards, by_tokens
from tests.cases.bank import NotYetError

__all__ = ["check"]


def check(case: dict[str, Any]) -> str | None:
    """None when the outcome is right, else what is wrong with it."""
    return _kind(case)(case)


def _kind(case: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], str | None]:
    if "judge_output" in case:
        raise NotYetError("judge outputs")
    if "rewards" in case:
        return by_rewards.check_advantages if "advantages" in case["expected"] else by_rewards.check_totals
    if "config" in case:
        return by_command.check_resume if "resume_from_checkpoint" in case["config"] else by_command.check_batch
    for key, kind in _BY_KEY.items():
        if key in case:
            return kind
    raise ValueError(f"no kind of case has the keys {sorted(case)}")


_BY_KEY: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "cli": by_command.check_command,
    "reward_function": by_rewards.check_returned,
    "step_means": by_rewards.check_mean_over_steps,
    "reward": by_rewards.check_reward_by_length,
    "eos_token_ids": by_tokens.check_end_of_sequence,
    "tokenizer": by_tokens.check_tokenizer,
    "completions": by_rewards.check_routing,
    "num_generations": by_rewards.check_aligned_columns,
}
