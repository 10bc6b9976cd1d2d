"""Recipes: the schema, files and layers, and the plan that a run is resolved into."""
