"""A reward."""


def right_hand(completions):
    return [1.0 for _ in completions]
