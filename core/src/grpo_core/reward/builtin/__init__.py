"""Rewards of form, length and tool calls that come with core."""
