"""From the columns of a row to what is asked of a program and what must come of it."""
