"""The Countdown task: make a target of given numbers, each used once, with + - * / and parentheses."""
