"""A whole training step beside TRL and ms-swift: see `__main__.py`."""
