"""The `transformers` rollout backend: our own decode loop on Hugging Face modules."""
