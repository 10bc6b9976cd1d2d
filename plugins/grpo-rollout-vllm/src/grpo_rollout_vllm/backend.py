"""The factory of the `vllm` rollout backend."""

from __future__ import annotations

from grpo_core.api import RolloutBackend
from grpo_core.backends import BackendContext
from grpo_rollout_vllm.options import VllmRolloutOptions
from grpo_rollout_vllm.rollout import ServerRollout

__all__ = ["make"]


def make(options: VllmRolloutOptions, context: BackendContext) -> RolloutBackend:
    """Connect to the servers."""
    return ServerRollout(options, context)
