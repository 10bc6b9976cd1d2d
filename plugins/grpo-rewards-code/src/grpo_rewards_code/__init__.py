"""Code for grpo-core: the reward that runs programs in a sandbox, and the datasets whose rows hold tests."""

__version__ = "0.1.0"
