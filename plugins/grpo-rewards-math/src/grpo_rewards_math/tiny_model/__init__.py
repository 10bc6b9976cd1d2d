"""The tiny model that Countdown runs on without a download: `python -m grpo_rewards_math.tiny_model OUT` makes it.

    tokenizer       a byte-level BPE with a chat template, trained on the Countdown prompts
    demonstrations  prompts with well-formed answers, about half of which miss the target
    warm_up         a fresh Qwen3 of 0.8 M parameters, trained to imitate them
    folder          all of it in Hugging Face layout

Imports torch and transformers, so nothing that runs on every command imports it. The folder it made for the recipe
`countdown-tiny` is `recipes/countdown-tiny/`.
"""
