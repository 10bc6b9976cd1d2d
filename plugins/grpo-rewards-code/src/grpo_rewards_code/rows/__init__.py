"""Rows of the well-known programming datasets as samples."""
