"""A tiny vision-language model that learns to count: `python -m grpo_datasets_vision.tiny_model OUT` makes it.

    task            the scenes and the question that it is made for
    tokenizer       byte-level BPE with placeholders for images and a chat template
    model           a fresh Qwen2-VL of 0.6 M parameters, and its image processor
    warm_up         supervised learning on the answers of a careless counter
    folder          all of it in Hugging Face layout

Needs grpo-rewards-math, whose tiny models have the same tokenizer. Imports torch and transformers, so nothing that runs
on every command imports it.
"""
