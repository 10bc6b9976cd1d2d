"""Probes: a few fixed prompts, answered every so many steps by the policy as it stands.

Training prompts do not recur within an epoch, and an evaluation keeps only numbers; probes are how a person sees the
same question answered at step 1, 200 and 500. Each prompt is answered greedily and once by sampling, from a random
stream that is the same at every step, so that answers differ by the weights alone. They train nothing, count in no
metric, and a reward that fails on them stops nothing.

Place in the flow: a finished step → **probes** → RUN/probes/step-000012.jsonl → the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grpo_core.data.prompts import Prompt
from grpo_core.loop.evaluate import answer
from grpo_core.loop.parts import Parts
from grpo_core.loop.prepare import Prepared
from grpo_core.loop.records import completion_row
from grpo_core.recipe.schema import RunSettings

__all__ = ["answer_probes", "probe_due", "probe_prompts"]

_TIMES = 20


def probe_prompts(prepared: Prepared, run: RunSettings) -> tuple[Prompt, ...]:
    """The prompts: of the evaluation rows where there are any, else of the training rows, evenly spread over them."""
    rows = prepared.evaluation or prepared.train
    count = min(run.probe_prompts, len(rows))
    return tuple(rows[place * len(rows) // count] for place in range(count))


def probe_due(run: RunSettings, step: int, *, total_steps: int) -> bool:
    """Whether the probes are answered after step `step`; step 0 is before the first, and the last is always due."""
    every = run.probe_every_steps or max(total_steps // _TIMES, 1)
    return run.probe_prompts > 0 and (step % every == 0 or step == total_steps)


def answer_probes(parts: Parts, prompts: Sequence[Prompt], *, step: int, version: int) -> Iterator[dict[str, object]]:
    """One row an answer, as in completions/, with `drawn` (greedy or sampled) in place of an advantage."""
    parts.weights.to(version)
    for drawn, samples in (("greedy", 0), ("sampled", 1)):
        scored = answer(parts, prompts, step=step, samples=samples, watched=False)
        for one in scored:
            yield {"step": step, **completion_row(one, 0), "drawn": drawn}
