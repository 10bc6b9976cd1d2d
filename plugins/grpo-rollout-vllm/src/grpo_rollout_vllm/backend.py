"""The factory of the `vllm` rollout backend: servers, or an engine beside the trainer."""

from __future__ import annotations

from grpo_core.api import RolloutBackend
from grpo_core.backends import BackendContext
from grpo_rollout_vllm.options import VllmRolloutOptions

__all__ = ["make"]


def make(options: VllmRolloutOptions, context: BackendContext) -> RolloutBackend:
    """Connect to the servers, or start the engine."""
    if options.mode == "colocated":
        from grpo_rollout_vllm.colocated import ColocatedRollout  # imports vLLM

        return ColocatedRollout(options, context)
    from grpo_rollout_vllm.rollout import ServerRollout

    return ServerRollout(options, context)
