"""Run folders as a run writes them, with numbers that a test chooses; no model is trained."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_core.plugins.specs import RewardSpec
from grpo_core.recipe.plan import LaunchPlan
from grpo_core.recipe.resolve import resolve
from grpo_core.report.run import RunFolder, open_run
from grpo_core.report.trends import Curve
from tests.core.recipe.fakes import ROLLOUT, SUMS, TRAINER, fake_host, recipe_of

Row = dict[str, Any]
SPECS = (
    ROLLOUT,
    TRAINER,
    SUMS,
    RewardSpec(name="sum_reward", summary="", target="tests.core.recipe.fakes:brevity", verifies=True),
    RewardSpec(name="format_reward", summary="", target="tests.core.recipe.fakes:brevity"),
)


def rising(first: float, last: float, steps: int = 60, *, noise: float = 0.0, seed: int = 0) -> list[float]:
    """Values on a straight line, with noise of this standard deviation."""
    draw = random.Random(seed)
    return [first + (last - first) * at / (steps - 1) + draw.gauss(0.0, noise) for at in range(steps)]


def curve_of(values: Iterable[float]) -> Curve:
    """A curve over the steps 1, 2, …"""
    return Curve.of(enumerate(values, start=1))


def plan_of(origins: Mapping[str, str] | None = None, **settings: Any) -> LaunchPlan:
    """A plan with two rewards, of which `sum_reward` verifies."""
    chosen = {"dataset": "sums", "rewards": ["sum_reward", {"use": "format_reward", "weight": 0.5}], **settings}
    return resolve(recipe_of(**chosen), dict(origins or {}), host=fake_host(*SPECS))


def answer_row(step: int = 1, member: int = 0, **changes: Any) -> Row:
    """A line of a completions file."""
    row: Row = {
        "step": step,
        "sample_id": "train-000001",
        "member": member,
        "prompt": "3 + 4 = ?",
        "completion": "<answer>7</answer>",
        "tokens": 9,
        "finish_reason": "stop",
        "policy_version": step - 1,
        "scores": {"sum_reward": 1.0, "format_reward": 1.0},
        "failures": {},
        "total": 1.5,
        "records": {},
        "columns": {"solution": 7},
        "advantage": 0.5,
    }
    return row | changes


def group_of(step: int, *totals: float, sample: int = 1) -> list[Row]:
    """Lines of one group."""
    return [
        answer_row(step, member, sample_id=f"train-{sample:06d}", total=total, scores={"sum_reward": total})
        for member, total in enumerate(totals)
    ]


def write_run(
    folder: Path,
    metrics: Sequence[Row] = (),
    *,
    completions: Mapping[int, Sequence[Row]] | None = None,
    probes: Mapping[int, Sequence[Row]] | None = None,
    plan: LaunchPlan | None = None,
) -> Path:
    """Write a run's folder; gives it."""
    folder.mkdir(parents=True, exist_ok=True)
    if plan is not None:
        plan.write(folder)
    (folder / "metrics.jsonl").write_text(lines(metrics), encoding="utf-8")
    for name, files in (("completions", completions), ("probes", probes)):
        (folder / name).mkdir(exist_ok=True)
        for step, rows in (files or {}).items():
            (folder / name / f"step-{step:06d}.jsonl").write_text(lines(rows), encoding="utf-8")
    return folder


def opened(folder: Path, metrics: Sequence[Row] = ({"step": 1, "reward/mean": 0.5},), **files: Any) -> RunFolder:
    """Write a run and open it."""
    return open_run(write_run(folder, metrics, **files), folder.name)


def metric_rows(**columns: Sequence[float | None]) -> list[Row]:
    """Rows of metrics.jsonl, from step 1; `reward__mean` is `reward/mean`."""
    steps = range(max(map(len, columns.values())))
    named = {name.replace("__", "/"): values for name, values in columns.items()}
    return [{"step": at + 1, **{name: values[at] for name, values in named.items()}} for at in steps]


def lines(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def learning_run(
    folder: Path,
    *,
    steps: int = 120,
    seed: int = 0,
    best: float = 0.8,
    text: Callable[[int, int], str] | None = None,
    plan: LaunchPlan | None = None,
) -> Path:
    """A run that learns, with everything in it that a report shows: for tests that look at the page."""
    draw = random.Random(seed)
    share = [0.1 + (best - 0.1) * (1 - 2.718 ** (-4 * at / steps)) + draw.gauss(0, 0.02) for at in range(steps)]
    metrics = [{"step": 0, **_evaluation(0.1)}]
    metrics += [_step(at + 1, value, steps, draw) for at, value in enumerate(share)]
    metrics[-1] |= _evaluation(share[-1])
    metrics[steps // 2] |= _evaluation(share[steps // 2])
    completions = {step: _groups(step, share[step - 1], draw, text) for step in range(1, steps + 1)}
    every = max(steps // 20, 1)
    probed = [step for step in range(steps + 1) if step % every == 0 or step == steps]
    probes = {step: _probes(step, share[max(step - 1, 0)], text) for step in probed}
    return write_run(folder, metrics, completions=completions, probes=probes, plan=plan or plan_of())


def _step(step: int, share: float, steps: int, draw: random.Random) -> Row:
    seconds = 0.6 + 0.2 * draw.random()
    length = 60 - 25 * 2.718 ** (-(((step / steps) - 0.2) ** 2) / 0.01) + 30 * step / steps + draw.gauss(0, 1)
    spread = (share * (1 - share)) ** 0.5
    return {
        "step": step,
        "epoch": step / 100,
        "rewards/sum_reward/mean": share,
        "rewards/sum_reward/std": spread,
        "rewards/sum_reward/coverage": 1.0,
        "rewards/sum_reward/failed": float(step == 7),
        "rewards/sum_reward/mixed_groups": 0.0,
        "rewards/format_reward/mean": min(1.0, 0.9 + step / steps / 5),
        "rewards/format_reward/std": 0.1,
        "rewards/format_reward/coverage": 1.0,
        "rewards/format_reward/failed": 0.0,
        "rewards/format_reward/mixed_groups": 0.0,
        "reward/mean": share + 0.45,
        "reward/std": spread,
        "reward/group_std": spread * 0.8,
        "reward/no_total": 0.0,
        "groups/no_signal_share": 0.1 + 0.3 * step / steps,
        "completions/length_mean": length,
        "completions/length_min": length / 2,
        "completions/length_max": length * 2,
        "completions/finished_length_mean": length - 1,
        "completions/truncated_share": 0.02,
        "completions/tokens": length * 64,
        "policy/loss": draw.gauss(0, 0.01),
        "policy/ratio_mean": 1.0,
        "policy/ratio_max": 1 + draw.random() / 10,
        "policy/clip_low_share": 0.001 * draw.random(),
        "policy/clip_high_share": 0.002 * draw.random(),
        "policy/kl": 0.0004 * step,
        "policy/entropy": 1.2 - 0.8 * step / steps,
        "sampler/gap_mean": 1e-6,
        "sampler/gap_max": 1e-5 * (1 + draw.random()),
        "sampler/ess": 1.0,
        "sampler/dropped_share": 0.0,
        "trainer/loss": draw.gauss(0, 0.01),
        "trainer/grad_norm": 0.5 + draw.random() / 2,
        "trainer/learning_rate": 1e-5 * min(step / 10, 1),
        "trainer/tokens": length * 60,
        "time/weights_s": 0.01,
        "time/rollout_s": seconds,
        "time/score_s": 0.02,
        "time/logprobs_s": 0.1,
        "time/update_s": 0.5 + 0.1 * draw.random(),
        "time/step_s": seconds + 0.7,
        "throughput/rollout_tokens_per_s": 64 * length / seconds,
        "acme/own_number": step % 5,
    }


def _evaluation(share: float) -> Row:
    return {
        "eval/prompts": 64.0,
        "eval/accuracy": share,
        "eval/judged_share": 1.0,
        "eval/tasks/easy/accuracy": min(1.0, share + 0.1),
        "eval/tasks/hard/accuracy": share - 0.05,
        "eval/reward_mean": share + 0.4,
        "eval/rewards/sum_reward/mean": share,
        "eval/rewards/format_reward/mean": 0.95,
        "eval/length_mean": 55.0,
        "eval/truncated_share": 0.0,
    }


def _groups(step: int, share: float, draw: random.Random, text: Callable[[int, int], str] | None) -> list[Row]:
    rows = []
    for group in range(4):
        for member in range(4):
            right = draw.random() < share
            failed = step == 7 and group == member == 1
            scores = {"sum_reward": None if failed else float(right), "format_reward": 1.0}
            rows.append(
                answer_row(
                    step,
                    member,
                    sample_id=f"train-{(step * 4 + group) % 97:06d}",
                    prompt=f"<|im_start|>user\nWhat is {step} + {group}?<|im_end|>\n<|im_start|>assistant\n",
                    completion=text(step, member) if text else thinking(step, group, right),
                    finish_reason="length" if draw.random() < 0.03 else "stop",
                    tokens=30 + draw.randrange(40),
                    scores=scores,
                    total=None if failed else float(right) + 0.5,
                    failures={"sum_reward": "ValueError: not a sum"} if failed else {},
                    columns={"solution": step + group, "task": "easy" if group % 2 else "hard"},
                    advantage=float(right) - share,
                )
            )
    return rows


def _probes(step: int, share: float, text: Callable[[int, int], str] | None) -> list[Row]:
    rows = []
    for drawn in ("greedy", "sampled"):
        for prompt in range(4):
            right = share > 0.2 + 0.2 * prompt - (0.1 if drawn == "sampled" else 0.0)
            row = answer_row(
                step,
                0,
                sample_id=f"evaluation-{prompt:06d}",
                prompt=f"<|im_start|>user\nWhat is {prompt} + 40?<|im_end|>\n<|im_start|>assistant\n",
                completion=text(step, prompt) if text else thinking(prompt, 40, right),
                scores={"sum_reward": float(right), "format_reward": 1.0},
                total=float(right) + 0.5,
                columns={"solution": prompt + 40},
                drawn=drawn,
            )
            del row["advantage"]
            rows.append(row)
    return rows


def thinking(one: int, other: int, right: bool) -> str:
    """An answer in the form that the reward asks for."""
    found = one + other if right else one + other + 1
    return (
        f"<think>\n{one} and {other} make {found}, since {one} + {other} = {found}.\n</think>\n<answer>{found}</answer>"
    )
