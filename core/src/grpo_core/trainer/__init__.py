"""The `torch` trainer backend."""
