"""Tiny models that learn without a download: `python -m grpo_rewards_math.tiny_model OUT` makes that of Countdown.

    lesson          what tells one tiny model from another: texts, demonstrations, README
    tokenizer       a byte-level BPE with a chat template, trained on the lesson's texts
    warm_up         a fresh Qwen3 of 0.8 M parameters, trained to imitate the demonstrations
    folder          all of it in Hugging Face layout
    command         the command line of a lesson
    countdown       the lesson of `recipes/countdown-tiny/`; its `demonstrations` often miss the target

Imports torch and transformers, so nothing that runs on every command imports it.
"""
