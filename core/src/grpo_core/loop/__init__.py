"""The loop: the only package that knows all stages."""
