"""What runs in the two sandboxes of a script: plain modules that need the standard library only."""
