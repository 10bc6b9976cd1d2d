"""Countdown for grpo-core: the reward, the dataset and a tiny model that learns it without a GPU."""

__version__ = "0.1.0"
