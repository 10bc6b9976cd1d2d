"""Rewards of form and length that come with core: they need no reference answer."""
