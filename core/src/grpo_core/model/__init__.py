"""The model and its tokenizer: loading, rendering prompts, and what is known without loading weights."""
