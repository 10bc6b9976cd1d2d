"""`grpoctl train --dry-run`: everything that comes before a model is loaded, and each quick pure reward called once.

    plan → data read, rewards bound → announced → **each reward on a made-up completion of a real row**

A function whose parameters fit may still fail on its first completion. What could ask a service, draw by chance or
change something is not called, and the output says why.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from grpo_core.data.prompts import Prompt
from grpo_core.errors import RewardError
from grpo_core.loop.launch import make_ready
from grpo_core.ranks.place import Processes
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.reward.binding import Answer
from grpo_core.reward.call import call, is_async
from grpo_core.reward.check import BoundReward, check_rewards
from grpo_core.trial.purity import why_impure
from grpo_core.trial.reference import answer_block, candidates, reference_text
from grpo_core.trial.scoring import FIRST_STEP, make_group, open_scorer, score
from grpo_core.types import BuildContext, Failed, Outcome, RolloutGroup, Sample

__all__ = ["dry_run", "first_calls"]

_MOST_S = 5.0
"""Seconds that a reward may take here; one that takes longer is not waited for."""
_SHOWN = 60
"""Characters of the completion that are shown."""


def dry_run(plan: LaunchPlan, processes: Processes | None = None, *, here: Processes | None = None) -> int:
    """Prepare the run and print its plan and what each reward gives; writes nothing. Arguments as of `make_ready`.

    Raises `RewardError` when a reward that is called fails.
    """
    plan, prepared = make_ready(plan, processes, here=here)
    context = BuildContext(seed=plan.recipe.run.seed)
    rewards = check_rewards(plan.rewards, prepared.columns, context)
    failures = []
    for reward, (text, failure) in zip(rewards, first_calls(plan, rewards, prepared.train, context), strict=True):
        print(f"reward {reward.planned.name}: {text}", flush=True)
        failures += [f"reward '{reward.planned.name}': {failure}"] if failure else []
    if failures:
        hint = "`grpoctl rewards try` calls it on completions and rows of your own."
        raise RewardError("\n  ".join(["a reward fails when it is called:", *failures]), hint=hint)
    return 0


def first_calls(
    plan: LaunchPlan, rewards: Sequence[BoundReward], prompts: Sequence[Prompt], context: BuildContext
) -> Iterator[tuple[str, str | None]]:
    """For each reward what it gave, or why it was not called, in words; and how it failed, if it did."""
    for reward in rewards:
        prompt = next((prompt for prompt in prompts if reward.claims(prompt.sample)), None)
        reason = "no row is of its tasks" if prompt is None else _why_not(reward)
        if prompt is None or reason is not None:
            yield f"not called: {reason}", None
            continue
        text = _made_up(prompt.sample, prompts, reward)
        group = make_group(prompt.sample, [text], prompt=prompt.text)
        outcome, taken_s = _called(plan, reward, group, context)
        place = f"on {json.dumps(text[:_SHOWN], ensure_ascii=False)}, made up for {prompt.sample.id}"
        if outcome is _OVERDUE:
            yield f"gave nothing within {_MOST_S:g} s {place}", None
        elif isinstance(outcome, Failed):
            yield f"failed {place}", f"{outcome.reason}, {place}"
        else:
            score = "None (it does not apply)" if outcome is None else f"{outcome:g}"
            yield f"{score} {place} ({taken_s * 1000:.1f} ms)", None


def _why_not(reward: BoundReward) -> str | None:
    if is_async(reward.function):
        return "it is async, as rewards are that ask a service"
    if reward.planned.scope not in (None, "sample"):
        return f"it compares completions (scope {reward.planned.scope}), and there is one"
    if reward.planned.pure:
        return None
    if ":" not in reward.planned.component.name:
        return "its plugin does not say that it is pure"
    reason = why_impure(reward.function)
    name = reward.planned.component.target.rpartition(":")[2]
    return f"{reason}; where that is no matter, say so: {name}.pure = True" if reason else None


def _made_up(sample: Sample, prompts: Sequence[Prompt], reward: BoundReward) -> str:
    """A completion in the usual form, with the row's right answer where a column is called as such columns are."""
    some = [prompt.sample for prompt in prompts[:32]]
    columns = candidates(reward.binding.columns.values(), sample.columns, some) or candidates(
        sample.columns, sample.columns, some
    )
    answers = (reference_text(sample.columns.get(column)) for column in columns)
    return f"<think>made up</think>\n{answer_block(next(filter(None, answers), '42'))}"


class _Overdue(BaseException):
    """It has taken too long. No `Exception`, which functions of users catch."""


_OVERDUE = Failed("overdue")


def _called(plan: LaunchPlan, reward: BoundReward, group: RolloutGroup, context: BuildContext) -> tuple[Outcome, float]:
    began = time.perf_counter()
    try:
        if reward.planned.runs_in == "worker":
            outcome = _by_worker(plan, reward, group, context)
        else:
            with _limited(_MOST_S):
                outcome = _here(reward, group)
    except _Overdue:
        outcome = _OVERDUE
    return outcome, time.perf_counter() - began


def _here(reward: BoundReward, group: RolloutGroup) -> Outcome:
    answers = [Answer(request=group.request, completion=completion) for completion in group.completions]
    arguments = reward.binding.arguments(answers, FIRST_STEP)
    return call(reward.function, arguments, count=1, records=reward.binding.records).outcomes[0]


def _by_worker(plan: LaunchPlan, reward: BoundReward, group: RolloutGroup, context: BuildContext) -> Outcome:
    """In the process that it runs in, which can be killed."""
    with open_scorer([reward.planned], plan.recipe.scoring, group.sample.columns, context) as scorer:
        (scored,) = score(scorer, [group])
        return scored.outcomes[reward.planned.name][0]


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `_Overdue` in the block when it takes longer. Only the main thread can be interrupted; elsewhere nothing
    is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Overdue

    before: Callable[..., object] | int | None = signal.signal(signal.SIGALRM, stop)
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
