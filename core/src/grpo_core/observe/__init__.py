"""Observers that core ships: the console."""
