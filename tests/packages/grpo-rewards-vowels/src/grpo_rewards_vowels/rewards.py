"""The reward."""

from collections.abc import Callable, Sequence

from grpo_core.api import BuildContext
from grpo_rewards_vowels.options import VowelOptions


def make(options: VowelOptions, context: BuildContext) -> Callable[..., list[float | None]]:
    """A reward that answers None for a completion without letters."""

    def vowel_share(completions: Sequence[str]) -> list[float | None]:
        return [_share(completion, options.scale) for completion in completions]

    return vowel_share


def _share(text: str, scale: float) -> float | None:
    letters = [letter for letter in text.lower() if letter.isalpha()]
    return scale * sum(letter in "aeiou" for letter in letters) / len(letters) if letters else None
