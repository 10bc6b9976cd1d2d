"""Plugins: hooks and specs, discovery, the airlock, and the catalog of what was admitted."""
