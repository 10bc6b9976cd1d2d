"""The tiny model of the recipe `multitask-math-code`: `python -m grpo_rewards_code.tiny_model OUT` makes it.

    demonstrations  calculations and functions with well-formed answers, of which a share are careless
    lesson          the same with tokenizer texts and README, as `grpo_rewards_math.tiny_model` teaches it

Needs grpo-rewards-math, as the recipe does. Imports torch and transformers, so nothing that runs on every command
imports it.
"""
