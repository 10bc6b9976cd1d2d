"""A reward."""


def left_hand(completions):
    return [1.0 for _ in completions]
