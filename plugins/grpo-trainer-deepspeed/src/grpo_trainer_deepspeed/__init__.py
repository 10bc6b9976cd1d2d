"""DeepSpeed training for grpo-core: ZeRO 0 to 3 with exact denominators."""

__version__ = "0.1.0"
