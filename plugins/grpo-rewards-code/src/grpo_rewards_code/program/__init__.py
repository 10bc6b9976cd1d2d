"""From a completion to the program in it."""
