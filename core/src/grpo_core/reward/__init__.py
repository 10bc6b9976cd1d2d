"""Rewards: binding, calling, workers, and the totals of a group."""
