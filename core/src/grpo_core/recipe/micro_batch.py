"""How many tokens a micro-batch has where nobody says: found by memory, and on a CPU by what is fastest.

    on a GPU   the whole update, up to MOST_TOKENS: larger matrices are faster
    on a CPU   what keeps matrix products efficient and the cost of calls small; more is no faster and costs memory

Either way at least a prompt with all its completions, so that it is forwarded once; and half as much, and again, until
the estimate of `recipe/memory.py` leaves a fifth of the memory free.
"""

from __future__ import annotations

from typing import Any

from grpo_core.recipe.memory import ModelShape, estimate_memory, mebibytes, update_tokens
from grpo_core.recipe.plan import LaunchPlan

__all__ = ["with_micro_batch"]

MOST_TOKENS = 32768
LEAST_CPU_TOKENS = 1024
"""Matrix products of so many rows are as fast as larger ones, as measured (docs/performance.md)."""
MOST_CPU_TOKENS = 8192
CPU_WORK = 2**32
"""Parameters times tokens of a micro-batch whose calls cost little beside its products."""
USED_SHARE = 0.8


def with_micro_batch(
    plan: LaunchPlan, shape: ModelShape | None, *, longest_prompt: int, ranks: int, on_gpu: bool, memory: int | None
) -> LaunchPlan:
    """The plan with a number for `trainer.micro_batch_tokens`, and in `found` why; as it is where it has one.

    `longest_prompt` in tokens; `memory` is what one of `ranks` processes may take, in bytes, None: not known.
    """
    if plan.recipe.trainer.micro_batch_tokens is not None:
        return plan
    if shape is None:
        return _changed(plan, plan.recipe.trainer.token_budget, "the shape of the model is not known")
    completions = -(-plan.batch.completions_per_step // ranks)
    own = plan.recipe.rollout.max_completion_tokens
    update = max(longest_prompt + own, update_tokens(plan, longest_prompt, completions))
    group = longest_prompt + plan.batch.completions_per_prompt * own
    wanted, reason = MOST_TOKENS, "larger is faster on a GPU"
    if not on_gpu:
        efficient = min(MOST_CPU_TOKENS, max(LEAST_CPU_TOKENS, CPU_WORK // max(1, shape.parameters)))
        wanted = max(efficient, min(MOST_CPU_TOKENS, group))
        reason = "more is no faster on a CPU"
        if wanted > efficient:
            reason = "a prompt with all its completions, and more is no faster on a CPU"
    if wanted >= update:
        wanted, reason = update, "the whole update is one micro-batch"
    found = _changed(plan, wanted, reason)
    while memory is not None and wanted > longest_prompt + own:
        peak = estimate_memory(found, shape, longest_prompt=longest_prompt, ranks=ranks).peak
        if peak <= USED_SHARE * memory:
            break
        wanted = max(longest_prompt + own, wanted // 2)
        found = _changed(plan, wanted, f"more does not fit into {mebibytes(memory)}")
    return found


def _changed(plan: LaunchPlan, tokens: int, reason: str) -> LaunchPlan:
    trainer: dict[str, Any] = {"micro_batch_tokens": tokens}
    recipe = plan.recipe.model_copy(update={"trainer": plan.recipe.trainer.model_copy(update=trainer)})
    return plan.model_copy(update={"recipe": recipe, "found": {**plan.found, "trainer.micro_batch_tokens": reason}})
