"""What every rank knows of a step's completions once they are scored: enough to plan the update, no text and no token.

From these alone follow advantages, denominators, who trains on what, and whether the run may go on; so every rank
comes to the same result, and the result does not depend on how many ranks there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grpo_core.errors import RolloutError
from grpo_core.loop.placeholders import has_placeholder
from grpo_core.loop.shares import Piece, Shares
from grpo_core.ranks.ranks import Ranks
from grpo_core.types import LogprobSpace, Outcome, ScoredGroup

__all__ = ["Facts", "Known", "learn", "one_space"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Of one group, or of the part that one rank drew."""

    sample_id: str
    """Of its sample."""
    outcomes: Mapping[str, tuple[Outcome, ...]]
    """Reward name -> [G] outcomes."""
    totals: tuple[float | None, ...]
    """[G] Totals."""
    prompt_tokens: int
    """Of the prompt."""
    lengths: tuple[int, ...]
    """[G] Tokens of the completions."""
    truncated: tuple[bool, ...]
    """[G] Whether the limit cut it off."""
    unreadable: tuple[bool, ...]
    """[G] Whether it has a token that stands for an image, so that it cannot be trained on."""
    visual_tokens: int
    """Of the prompt's tokens, those of its images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Of the whole step."""

    groups: tuple[Facts, ...]
    """In the order of the prompts."""
    shares: Shares
    """Who drew what."""
    logprob_space: LogprobSpace
    """Of the engine's log-probabilities."""


def learn(ranks: Ranks, scored: Mapping[Piece, ScoredGroup], reserved_ids: frozenset[int] = frozenset()) -> Known:
    """Tell everyone about this rank's completions, and hear about everyone's. `reserved_ids` are the tokens that stand
    for images."""
    told = ranks.gather(
        (
            {piece: _facts(one, reserved_ids) for piece, one in scored.items()},
            {one.group.logprob_space for one in scored.values()},
        )
    )
    facts = {piece: one for pieces, _ in told for piece, one in pieces.items()}
    places = sorted({piece.place for piece in facts})
    return Known(
        groups=tuple(_joined([facts[piece] for piece in sorted(facts) if piece.place == place]) for place in places),
        shares=tuple(tuple(sorted(pieces)) for pieces, _ in told),
        logprob_space=one_space(spaces for _, spaces in told),
    )


def one_space(told: Iterable[set[LogprobSpace]]) -> LogprobSpace:
    """The space that all ranks' log-probabilities are in; raises `RolloutError` when there are several."""
    spaces = set[LogprobSpace]().union(*told)
    if len(spaces) != 1:
        raise RolloutError(f"the rollout backend mixes log-probability spaces in one step: {sorted(spaces)}")
    return spaces.pop()


def _facts(one: ScoredGroup, reserved_ids: frozenset[int]) -> Facts:
    return Facts(
        sample_id=one.sample_id,
        outcomes=dict(one.outcomes),
        totals=one.totals,
        prompt_tokens=len(one.group.request.prompt_ids),
        lengths=tuple(len(completion.token_ids) for completion in one.group.completions),
        truncated=tuple(completion.truncated for completion in one.group.completions),
        unreadable=tuple(has_placeholder(completion, reserved_ids) for completion in one.group.completions),
        visual_tokens=sum(token in reserved_ids for token in one.group.request.prompt_ids),
    )


def _joined(parts: Sequence[Facts]) -> Facts:
    """The parts of one group, in order, as one."""
    first = parts[0]
    return Facts(
        sample_id=first.sample_id,
        outcomes={name: tuple(o for part in parts for o in part.outcomes[name]) for name in first.outcomes},
        totals=tuple(total for part in parts for total in part.totals),
        prompt_tokens=first.prompt_tokens,
        lengths=tuple(length for part in parts for length in part.lengths),
        truncated=tuple(cut for part in parts for cut in part.truncated),
        unreadable=tuple(flag for part in parts for flag in part.unreadable),
        visual_tokens=first.visual_tokens,
    )
