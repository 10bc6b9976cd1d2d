"""What stops all ranks: the first failure of any of them, as every other one learns of it; and what each says then."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from grpo_core.errors import GrpoError, RankError

__all__ = ["Failure", "PeerError", "Word", "failure_of", "named"]

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error that travels: plain text, so that every rank can read it whatever it has imported."""

    rank: int
    """Whose it is."""
    by: int
    """The rank that says so; another one where the first died. It is the one that prints it."""
    message: str
    """What happened, beginning with the rank."""
    hint: str | None = None
    """What to do."""
    exit_code: int = GrpoError.exit_code
    """What every rank exits with."""

    @property
    def is_death(self) -> bool:
        """Whether its rank is gone, and another one says so."""
        return self.by != self.rank

    def to_text(self) -> str:
        """As one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Failure:
        """Read what `to_text` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a rank says of itself once the run has failed: the state that its weights are in."""

    step: int = 0
    """The last whole step."""
    version: int = 0
    """Optimiser updates until then."""
    calls: int = 0
    """Of its trainer: ranks that differ have not taken part in the same collectives."""
    exchanges: int = 0
    """With the other ranks; filled in by `Ranks`."""
    obstacle: str | None = None
    """Why that state cannot be written; None: it can."""

    def to_text(self) -> str:
        """As one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Word:
        """Read what `to_text` wrote."""
        return cls(**json.loads(text))


class PeerError(RankError):
    """Another rank's failure, raised in this one."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure
        self.exit_code = failure.exit_code


def failure_of(error: BaseException, rank: int) -> Failure:
    """What is told about an error of this rank; notes on it are part of the hint."""
    if isinstance(error, KeyboardInterrupt):
        return Failure(rank=rank, by=rank, message="interrupted", exit_code=_INTERRUPTED)
    if isinstance(error, GrpoError):
        message, hint, exit_code = error.message, error.hint, error.exit_code
    else:
        message, hint, exit_code = f"{type(error).__name__}: {error}", None, GrpoError.exit_code
    hint = "\n".join(filter(None, [hint, *getattr(error, "__notes__", ())])) or None
    return Failure(rank=rank, by=rank, message=named(rank, message), hint=hint, exit_code=exit_code)


def named(rank: int, message: str) -> str:
    """The message with the rank in front, unless it speaks of ranks itself."""
    return message if message.startswith("rank") else f"rank {rank}: {message}"
