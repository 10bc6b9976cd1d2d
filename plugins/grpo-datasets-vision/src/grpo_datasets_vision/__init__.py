"""Datasets with images, and the recipes of their published runs."""

__version__ = "0.1.0"
