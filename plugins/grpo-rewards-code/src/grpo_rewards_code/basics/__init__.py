"""`code_basics`: small functions to write, made on the spot, each with tests that its reference solution passes."""
