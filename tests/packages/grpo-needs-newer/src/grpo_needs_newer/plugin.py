"""A plugin for a grpo-core that does not exist yet; it must not even be imported."""

raise AssertionError("imported")
