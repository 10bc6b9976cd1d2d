"""`math_basics`: short calculations made on the spot, each with its exact result and the steps that lead there."""
