"""Test scripts: read here, run in a sandbox of their own, with stubs in the place of the program's names."""
