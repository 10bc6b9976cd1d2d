"""Which curves are drawn, in which chart, with what said about them. `charts.py` fills it with the metrics there are.

In the name of a metric, `<name>` stands for each that there is and makes a chart of its own; `<*>` makes a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["CHARTS", "Chart", "Line", "Unit"]

Unit = Literal["number", "share", "tokens", "seconds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A curve of a chart."""

    metric: str
    label: str
    spread: str | None = None
    """The metric with its standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture."""

    group: str
    title: str
    note: str
    lines: tuple[Line, ...]
    unit: Unit = "number"
    stacked: bool = False
    always: bool = False
    """Drawn even where it never changes."""


def _chart(group: str, title: str, note: str, *lines: str, **more: Any) -> Chart:
    """Lines as `metric = label`, or `metric = label ± spread`."""
    made = []
    for line in lines:
        metric, _, rest = line.partition(" = ")
        label, _, spread = rest.partition(" ± ")
        made.append(Line(metric=metric, label=label, spread=spread or None))
    return Chart(group=group, title=title, note=note, lines=tuple(made), **more)


_REWARDS, _ANSWERS, _POLICY, _UPDATE = "Rewards", "Completions", "Policy", "Update"
_SAMPLER, _TIME, _EVALUATION = "Sampler against trainer", "Time", "Evaluation"

CHARTS: tuple[Chart, ...] = (
    _chart(
        _REWARDS, "Total reward", "weighted total of each completion", "reward/mean = mean ± reward/std", always=True
    ),
    _chart(
        _REWARDS,
        "<name>",
        "score of each completion it applies to",
        "rewards/<name>/mean = mean ± rewards/<name>/std",
        always=True,
    ),
    _chart(
        _REWARDS,
        "Spread within groups",
        "deviation among answers to one prompt: what there is to learn",
        "reward/group_std = std",
    ),
    _chart(
        _REWARDS,
        "Groups without signal",
        "share of groups whose answers are all worth the same",
        "groups/no_signal_share = share",
        unit="share",
    ),
    _chart(_REWARDS, "What the total is made of", "weight × mean of each reward", "weighted/<*> = <*>"),
    _chart(
        _REWARDS,
        "Coverage",
        "share of completions a reward applies to",
        "rewards/<*>/coverage = <*>",
        unit="share",
    ),
    _chart(
        _REWARDS,
        "Failed scores",
        "scores that could not be computed, a step",
        "rewards/<*>/failed = <*>",
    ),
    _chart(
        _REWARDS,
        "Without a total",
        "completions a step that take no part in the update",
        "reward/no_total = completions",
    ),
    _chart(
        _REWARDS,
        "Mixed groups",
        "groups in which a reward applied to some answers only",
        "rewards/<*>/mixed_groups = <*>",
    ),
    _chart(_REWARDS, "Reward by dataset", "mean total of a dataset's completions", "data/<*>/reward = <*>"),
    _chart(_REWARDS, "Share by dataset", "of the step's prompts", "data/<*>/share = <*>", unit="share"),
    _chart(_REWARDS, "Reward by task", "mean total of a task's completions", "tasks/<*>/reward_mean = <*>"),
    _chart(
        _REWARDS,
        "Spread by task",
        "deviation among answers to one prompt of a task",
        "tasks/<*>/group_std = <*>",
    ),
    _chart(_REWARDS, "Share by task", "of the step's prompts", "tasks/<*>/share = <*>", unit="share"),
    _chart(
        _ANSWERS,
        "Length",
        "tokens of a completion",
        "completions/length_mean = mean",
        "completions/finished_length_mean = of those not cut off",
        unit="tokens",
    ),
    _chart(
        _ANSWERS,
        "Shortest and longest",
        "tokens",
        "completions/length_max = longest",
        "completions/length_min = shortest",
        unit="tokens",
    ),
    _chart(
        _ANSWERS,
        "Cut off",
        "share of completions that hit the token limit",
        "completions/truncated_share = share",
        unit="share",
    ),
    _chart(
        _ANSWERS,
        "Placeholders",
        "completions with a token that stands for an image",
        "completions/placeholders = completions",
    ),
    _chart(_ANSWERS, "Tokens drawn", "all completions of a step", "completions/tokens = tokens", unit="tokens"),
    _chart(_POLICY, "KL", "divergence from the reference model, nats a token", "policy/kl = KL"),
    _chart(_POLICY, "Entropy", "of the next-token distribution, nats", "policy/entropy = entropy"),
    _chart(
        _POLICY,
        "Clipped",
        "share of tokens whose gradient the clip removes; of cispo those whose weight it bounds",
        "policy/clip_low_share = below",
        "policy/clip_high_share = above",
        "policy/bounded_share = bounded",
        unit="share",
    ),
    _chart(
        _POLICY,
        "Ratio",
        "probability now ÷ before the step's first update",
        "policy/ratio_mean = mean",
        "policy/ratio_max = largest",
    ),
    _chart(
        _POLICY,
        "Loss",
        "near 0 on-policy by construction; it says little",
        "policy/loss = policy",
        "trainer/loss = as the optimiser got it",
    ),
    _chart(
        _POLICY,
        "Routers",
        "load balancing loss of a mixture of experts; even: as many as experts a token goes to",
        "policy/router_loss = loss",
    ),
    _chart(_POLICY, "Fall from the best", "of the smoothed mean total", "health/reward_fall = fall"),
    _chart(_POLICY, "Collapse", "1: judged so by the run", "health/collapse = collapse"),
    _chart(_UPDATE, "Gradient norm", "before clipping", "trainer/grad_norm = norm"),
    _chart(_UPDATE, "Learning rate", "of the step's last update", "trainer/learning_rate = rate"),
    _chart(_UPDATE, "Tokens forwarded", "padding not counted", "trainer/tokens = tokens", unit="tokens"),
    _chart(
        _UPDATE,
        "Visual tokens",
        "made of images, each once an update",
        "trainer/visual_tokens = tokens",
        unit="tokens",
    ),
    _chart(_UPDATE, "Vision tower", "calls of each process", "trainer/tower_calls = calls"),
    _chart(
        _UPDATE,
        "Padding",
        "share of forwarded positions",
        "trainer/padding_share = share",
        unit="share",
    ),
    _chart(_UPDATE, "Micro-batches", "forward and backward passes", "trainer/micro_batches = passes"),
    _chart(
        _UPDATE,
        "Skipped completions",
        "advantage 0, so their forward was not needed",
        "trainer/skipped_sequences = completions",
    ),
    _chart(
        _SAMPLER,
        "Gap",
        "difference of log-probabilities of the same tokens",
        "sampler/gap_mean = mean",
        "sampler/gap_max = largest",
    ),
    _chart(
        _SAMPLER,
        "Gap with the same weights",
        "the same, of a few tokens drawn with the newest weights",
        "sampler/fresh_gap_mean = mean",
        "sampler/fresh_gap_max = largest",
    ),
    _chart(_SAMPLER, "Divergence", "of the sampler from the trainer, nats", "sampler/kl = KL"),
    _chart(
        _SAMPLER,
        "Weights",
        "trainer's probability ÷ sampler's",
        "sampler/ratio_mean = mean",
        "sampler/ratio_max = largest",
        "sampler/ratio_min = smallest",
    ),
    _chart(
        _SAMPLER,
        "Staleness",
        "updates between the weights that drew and those that learn",
        "sampler/staleness_mean = mean",
        "sampler/staleness_max = largest",
    ),
    _chart(
        _SAMPLER,
        "Use of the sample",
        "effective sample size, and weights capped or dropped",
        "sampler/ess = effective",
        "sampler/dropped_share = capped or dropped",
        unit="share",
    ),
    _chart(
        _TIME,
        "Where a step's time goes",
        "seconds, stacked",
        "time/rollout_s = rollout",
        "time/score_s = waiting for rewards",
        "time/gather_s = waiting for other processes",
        "time/logprobs_s = log-probabilities",
        "time/update_s = update",
        "time/weights_s = weights",
        unit="seconds",
        stacked=True,
    ),
    _chart(_TIME, "A step", "seconds", "time/step_s = step", unit="seconds"),
    _chart(
        _TIME,
        "Throughput",
        "tokens a second of their stage",
        "throughput/rollout_tokens_per_s = drawn",
        "throughput/update_tokens_per_s = trained on",
    ),
    _chart(_TIME, "Epoch", "passes over the training rows", "epoch = epoch"),
    _chart(
        _EVALUATION,
        "Accuracy",
        "share of held-out prompts whose greedy answer is correct",
        "eval/accuracy = all",
        "eval/tasks/<*>/accuracy = <*>",
        unit="share",
    ),
    _chart(
        _EVALUATION,
        "Mean reward",
        "of the answers to held-out prompts",
        "eval/reward_mean = greedy",
        "eval/reward_se = standard error",
        "eval/sampled_reward_mean = sampled",
    ),
    _chart(_EVALUATION, "Each reward", "mean over greedy answers", "eval/rewards/<*>/mean = <*>"),
    _chart(_EVALUATION, "Reward by task", "mean total of greedy answers", "eval/tasks/<*>/reward_mean = <*>"),
    _chart(
        _EVALUATION,
        "Standard error by task",
        "of the mean total of greedy answers",
        "eval/tasks/<*>/reward_se = <*>",
    ),
    _chart(
        _EVALUATION, "pass@k", "chance that one of k sampled answers is correct", "eval/pass@<*> = k <*>", unit="share"
    ),
    _chart(_EVALUATION, "Length", "tokens of a greedy answer", "eval/length_mean = mean", unit="tokens"),
    _chart(
        _EVALUATION,
        "Cut off",
        "share of greedy answers that hit the token limit",
        "eval/truncated_share = share",
        unit="share",
    ),
    _chart(
        _EVALUATION,
        "Judged",
        "share a verifying reward could judge",
        "eval/judged_share = share",
        unit="share",
    ),
    _chart(_EVALUATION, "Prompts", "held-out prompts answered", "eval/prompts = all", "eval/tasks/<*>/prompts = <*>"),
)
