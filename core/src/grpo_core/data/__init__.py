"""Data: from a reference to rows, from rows to samples, from samples to rendered prompts."""
