"""vLLM rollouts for grpo-core: servers, colocated engines, verified weight updates."""

__version__ = "0.1.0"
