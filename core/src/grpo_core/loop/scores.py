"""Generation and scoring of a list of requests over all ranks: each draws and scores its share.

A reward that must see more than its rank drew (all completions of a step, or of a group that is split) is called on
rank 0, with everything, and its outcomes go back to whoever trains on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from grpo_core.loop.parts import Parts
from grpo_core.loop.shares import Piece, Shares, deal
from grpo_core.loop.timing import Clock
from grpo_core.plugins.specs import Scope
from grpo_core.reward.binding import RunValues
from grpo_core.reward.scoring import ALL_SCOPES, Scoring
from grpo_core.types import Completion, LogprobSpace, Outcome, RolloutGroup, RolloutRequest, ScoredGroup

__all__ = ["Scored", "bring_together", "part_of", "roll_and_score", "score"]

Scored = Mapping[Piece, ScoredGroup]
"""What this rank drew."""
Value = TypeVar("Value")


def roll_and_score(parts: Parts, requests: Sequence[RolloutRequest], moment: RunValues, clock: Clock) -> Scored:
    """Draw and score this rank's share of the requests, each group scored as it arrives."""
    asked = part_of(parts, requests)
    return score(parts, requests, asked, parts.rollout.generate(list(asked.values())), moment, clock)


def part_of(parts: Parts, requests: Sequence[RolloutRequest]) -> Mapping[Piece, RolloutRequest]:
    """This rank's share of the requests."""
    mine = deal(len(requests), requests[0].n, parts.ranks.world_size)[parts.ranks.rank]
    return {piece: _part(requests[piece.place], piece) for piece in mine}


def score(
    parts: Parts,
    requests: Sequence[RolloutRequest],
    asked: Mapping[Piece, RolloutRequest],
    groups: Iterable[RolloutGroup],
    moment: RunValues,
    clock: Clock,
) -> Scored:
    """Score the groups that answer this rank's share, `asked`, each as it arrives."""
    wide = _wide_scopes(parts, deal(len(requests), requests[0].n, parts.ranks.world_size), requests[0].n)
    scoring = _begin(parts, moment, ALL_SCOPES - wide)
    with clock("rollout"):
        for group in groups:
            scoring.add(group)
    with clock("score"):
        by_request = {id(one.group.request): one for one in scoring.finish(watched=False)}
        scored = {piece: by_request[id(request)] for piece, request in asked.items()}
        return _score_wide(parts, requests, scored, moment, wide) if wide else scored


def bring_together(parts: Parts, requests: Sequence[RolloutRequest], scored: Scored) -> tuple[ScoredGroup, ...]:
    """On rank 0 every group of all ranks, whole, in the order of the requests; nothing elsewhere."""
    sent = parts.ranks.collect({piece: _ScoredPiece.of(one) for piece, one in scored.items()})
    found = zip(requests, _by_place(sent), strict=parts.ranks.is_first)
    return tuple(_whole(request, pieces) for request, pieces in found)


def _part(request: RolloutRequest, piece: Piece) -> RolloutRequest:
    whole = piece.count == request.n
    return request if whole else replace(request, n=piece.count, first_member=piece.first)


def _wide_scopes(parts: Parts, shares: Shares, completions: int) -> frozenset[Scope]:
    """The scopes of rewards that see more than a rank has. Those of a whole step always get it in the order of the
    requests, however many ranks there are and in whatever order groups arrived."""
    split = any(piece.count < completions for share in shares for piece in share)
    wide: frozenset[Scope] = frozenset(("group", "step") if split else ("step",))
    return wide & parts.scorer.scopes()


def _begin(parts: Parts, moment: RunValues, scopes: frozenset[Scope]) -> Scoring:
    return parts.scorer.begin(
        step=moment.step, epoch=moment.epoch, progress=moment.progress, max_steps=moment.max_steps, scopes=scopes
    )


def _score_wide(
    parts: Parts, requests: Sequence[RolloutRequest], scored: Scored, moment: RunValues, wide: frozenset[Scope]
) -> Scored:
    """The same groups with the outcomes of the rewards of the scopes `wide`, which rank 0 calls."""
    names = [reward.planned.name for reward in parts.scorer.rewards if reward.planned.scope in wide]
    everything = bring_together(parts, requests, scored)
    scoring = _begin(parts, moment, wide)
    for one in everything:
        scoring.add(one.group)
    found = [({name: one.outcomes[name] for name in names}, one.records) for one in scoring.finish(watched=False)]
    told = parts.ranks.from_first(found)

    def joined(piece: Piece, one: ScoredGroup) -> ScoredGroup:
        outcomes, records = told[piece.place]
        return parts.scorer.join(one, _cut(outcomes, piece), _cut(records, piece))

    return {piece: joined(piece, one) for piece, one in scored.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScoredPiece:
    """A scored group on its way to rank 0, which has its request."""

    completions: tuple[Completion, ...]
    logprob_space: LogprobSpace
    outcomes: Mapping[str, tuple[Outcome, ...]]
    totals: tuple[float | None, ...]
    records: Mapping[str, tuple[object, ...]]

    @classmethod
    def of(cls, one: ScoredGroup) -> _ScoredPiece:
        return cls(
            completions=one.group.completions,
            logprob_space=one.group.logprob_space,
            outcomes=dict(one.outcomes),
            totals=one.totals,
            records=dict(one.records),
        )


def _by_place(sent: Sequence[Mapping[Piece, _ScoredPiece]]) -> Iterator[list[_ScoredPiece]]:
    """The pieces of each group, in order."""
    pieces = sorted(((p, one) for each in sent for p, one in each.items()), key=lambda pair: pair[0])
    for _, found in groupby(pieces, key=lambda pair: pair[0].place):
        yield [one for _, one in found]


def _whole(request: RolloutRequest, parts: Sequence[_ScoredPiece]) -> ScoredGroup:
    completions = tuple(completion for part in parts for completion in part.completions)
    return ScoredGroup(
        group=RolloutGroup(request=request, completions=completions, logprob_space=parts[0].logprob_space),
        outcomes=_chained([part.outcomes for part in parts]),
        totals=tuple(total for part in parts for total in part.totals),
        records=_chained([_with_all_names(part, parts) for part in parts]),
    )


def _with_all_names(part: _ScoredPiece, parts: Sequence[_ScoredPiece]) -> Mapping[str, tuple[object, ...]]:
    """What a part recorded, with None for the names that only other parts of its group have."""
    names = {name: None for each in parts for name in each.records}
    return {name: part.records.get(name, (None,) * len(part.completions)) for name in names}


def _chained(parts: Sequence[Mapping[str, tuple[Value, ...]]]) -> dict[str, tuple[Value, ...]]:
    return {name: tuple(value for part in parts for value in part[name]) for name in parts[0]}


def _cut(values: Mapping[str, tuple[Value, ...]], piece: Piece) -> dict[str, tuple[Value, ...]]:
    return {name: row[piece.first : piece.first + piece.count] for name, row in values.items()}
