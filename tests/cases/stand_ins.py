"""Rewards that do what a case says: scores told in a column, a given return, and names that do not exist yet."""

from __future__ import annotations

import asyncio
import builtins
import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from tests.cases.decode import decoded

__all__ = ["Behaviour", "behave", "code_reward", "math_reward", "remembers", "told"]


def told(completions: Sequence[str], scores: Sequence[Sequence[Any]]) -> list[Any]:
    """Each completion is the position of its score in its sample's column."""
    return [of_sample[int(text)] for text, of_sample in zip(completions, scores, strict=True)]


def remembers(completions: Sequence[str], solution: Sequence[object], record: Callable[..., None]) -> list[float]:
    """Records the solution that comes with each completion."""
    record("solution_seen", list(solution))
    return [0.0] * len(completions)


class Behaviour(BaseModel):
    """What a function is to do."""

    returns: Any = None
    raises: str | None = None
    is_async: bool = False
    sleep_s: float = 0.0


def behave(options: Behaviour, context: object) -> Callable[..., Any]:
    """A reward function that does it."""

    def synchronous(completions: Sequence[str]) -> Any:
        if options.raises is not None:
            raise _exception(options.raises)
        return decoded(options.returns)

    async def asynchronous(completions: Sequence[str]) -> Any:
        await asyncio.sleep(options.sleep_s)
        return synchronous(completions)

    return asynchronous if options.is_async else synchronous


def _exception(text: str) -> Exception:
    """`KeyError('verification_info')` as an exception."""
    match = re.fullmatch(r"(?:\w+\.)*(\w+)\((?:'(.*)'|\"(.*)\")?\)", text)
    kind = getattr(builtins, match[1], RuntimeError) if match else RuntimeError
    made: Exception = kind(match[2] or match[3] or "") if match else kind(text)
    return made


def math_reward(completions: Sequence[str], solution: Sequence[object]) -> list[float]:
    """For cases about the command line, where any reward of this name does."""
    return [0.0] * len(completions)


def code_reward(completions: Sequence[str]) -> list[float]:
    """The same."""
    return [0.0] * len(completions)
