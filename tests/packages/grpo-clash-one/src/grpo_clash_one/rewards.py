"""A reward."""


def politeness(completions):
    return [1.0 for _ in completions]
