"""Small groups, scores and reports for tests of the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grpo_core.types import (
    Completion,
    FinishReason,
    Message,
    Outcome,
    RolloutGroup,
    RolloutRequest,
    Sample,
    SamplingParams,
    ScoredGroup,
    StepReport,
)


def completion(tokens: int = 3, *, text: str = "abc", truncated: bool = False) -> Completion:
    """A completion of `tokens` tokens, each with log-probability -1."""
    return Completion(
        text=text,
        token_ids=tuple(range(tokens)),
        sampling_logprobs=(-1.0,) * tokens,
        finish_reason=FinishReason.LENGTH if truncated else FinishReason.STOP,
    )


def scored_group(
    totals: Sequence[float | None],
    *,
    outcomes: Mapping[str, Sequence[Outcome]] | None = None,
    completions: Sequence[Completion] | None = None,
    columns: Mapping[str, object] | None = None,
    sample_id: str = "train-000001",
) -> ScoredGroup:
    """A scored group of one prompt."""
    made = tuple(completions or [completion() for _ in totals])
    sample = Sample(
        id=sample_id, messages=(Message(role="user", content="6*7?"),), columns=dict(columns or {"solution": "42"})
    )
    request = RolloutRequest(
        sample=sample,
        prompt_text="6*7?",
        prompt_ids=(1, 2),
        n=len(made),
        params=SamplingParams(max_tokens=8),
        seed=0,
    )
    return ScoredGroup(
        group=RolloutGroup(request=request, completions=made),
        outcomes={name: tuple(values) for name, values in (outcomes or {"r": totals}).items()},
        totals=tuple(totals),
    )


def step_report(step: int = 1, **metrics: float | None) -> StepReport:
    """A report of a step with one group."""
    return StepReport(
        step=step,
        total_steps=10,
        metrics={"reward/mean": 0.5, **metrics},
        groups=(scored_group([1.0, 0.0]),),
        advantages=((0.7, -0.7),),
    )
