"""grpo-core: GRPO training made of plugins. Importing this package costs nothing; authors import `grpo_core.api`."""

__version__ = "0.1.0"
