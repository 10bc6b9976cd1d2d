"""A reward."""


def politeness(completions):
    return [2.0 for _ in completions]
