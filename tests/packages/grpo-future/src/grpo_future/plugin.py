"""A plugin for hooks that do not exist yet; it must not even be imported."""

raise AssertionError("imported")
