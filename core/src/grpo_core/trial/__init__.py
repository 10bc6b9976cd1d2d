"""Rewards tried without training: on a completion typed by hand, on cases, on controls, on the completions of a run."""
