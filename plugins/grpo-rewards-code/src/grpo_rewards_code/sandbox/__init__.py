"""Isolation on this machine: what a program is confined by, and the host's side of it."""
