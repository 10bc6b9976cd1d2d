"""Which completions are forwarded beside which others, and which micro-batches share what the vision tower makes.

    rows → rounds of micro-batches: groups with images, a group whole in one round; then what is text only

A round's images are encoded once, at its beginning, and one backward pass goes through the tower, at its end. So the
graph of one round's images is alive at a time, and ranks that begin and end rounds together call the tower together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from grpo_core.trainer.rows import DUMMY, Row

__all__ = ["Round", "pack", "plan_rounds", "shared_tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Some micro-batches of a pass, one after the other."""

    packs: tuple[tuple[Row, ...], ...]
    """At least one micro-batch."""
    has_images: bool = False
    """Whether the tower runs for it, on every rank."""
    is_shared: bool = False
    """Whether a prompt is forwarded once for the rows of its group in a micro-batch."""

    @property
    def groups(self) -> tuple[int, ...]:
        """The groups of its rows that have images, each once."""
        return tuple(dict.fromkeys(row.group for rows in self.packs for row in rows if row.images))


def plan_rounds(rows: Sequence[Row], budget_tokens: int, *, shared: bool = False) -> list[Round]:
    """Micro-batches of at most `budget_tokens`, padding included, in rounds; at least one of each.

    Where `shared`, a prompt counts once for the rows of its group in a micro-batch, and a group that fits into one is
    in one. Several groups with images are one micro-batch, and a round, while they fit; one that does not fit is
    several micro-batches and a round of its own. Rows without an image are packed as if there were no others.
    """
    way = _SHARED if shared else _PADDED
    visual = _whole_groups(_by_group(row for row in rows if row.images), budget_tokens, way)
    rounds = [Round(packs=packs, has_images=True, is_shared=shared) for packs in visual]
    text = [row for row in rows if not row.images]
    if text or not rounds:
        rounds.append(Round(packs=_pack_text(text, budget_tokens, shared=shared), is_shared=shared))
    return rounds


def pack(rows: Sequence[Row], budget_tokens: int) -> list[tuple[Row, ...]]:
    """Cut rows into micro-batches of at most `budget_tokens` padded tokens; a longer row goes alone.

    Longest first: neighbours are of like length, so padding is little, and what does not fit into memory fails at
    once. Always at least one micro-batch, of `DUMMY` when there are no rows.
    """
    packs: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: -row.length):
        if packs and (len(packs[-1]) + 1) * packs[-1][0].length <= budget_tokens:
            packs[-1].append(row)
        else:
            packs.append([row])
    return [tuple(pack) for pack in packs] or [(DUMMY,)]


def shared_tokens(rows: Sequence[Row]) -> int:
    """How many tokens are forwarded for rows whose prompts are there once."""
    prompts = {row.group: len(row.prompt_ids) for row in rows}
    return sum(prompts.values()) + sum(row.length - len(row.prompt_ids) for row in rows)


def _pack_text(rows: Sequence[Row], budget_tokens: int, *, shared: bool) -> tuple[tuple[Row, ...], ...]:
    if not shared:
        return tuple(pack(rows, budget_tokens))
    packs = [pack for packs in _whole_groups(_by_group(rows), budget_tokens, _SHARED) for pack in packs]
    return tuple(packs) or ((DUMMY,),)


def _by_group(rows: Iterable[Row]) -> list[list[Row]]:
    """Those with the longest rows first."""
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return sorted(groups.values(), key=lambda group: -_longest(group))


class _Way(NamedTuple):
    """How rows become micro-batches."""

    size: Callable[[Sequence[Row]], int]
    """Tokens of rows in one micro-batch, padding included."""
    cut: Callable[[Sequence[Row], int], list[tuple[Row, ...]]]
    """The micro-batches of one group, within a budget."""


def _whole_groups(groups: Iterable[list[Row]], budget_tokens: int, way: _Way) -> list[tuple[tuple[Row, ...], ...]]:
    """The micro-batches of each group, or of several that fit into one."""
    cut: list[tuple[tuple[Row, ...], ...]] = []
    open_rows: tuple[Row, ...] = ()
    for group in groups:
        if open_rows and way.size([*open_rows, *group]) <= budget_tokens:
            open_rows += tuple(group)
            cut[-1] = (open_rows,)
        else:
            packs = tuple(way.cut(group, budget_tokens))
            open_rows = packs[0] if len(packs) == 1 else ()
            cut.append(packs)
    return cut


def _cut_shared(group: Sequence[Row], budget_tokens: int) -> list[tuple[Row, ...]]:
    """Longest completions first; the prompt is in each of the micro-batches."""
    packs: list[tuple[Row, ...]] = []
    for row in sorted(group, key=lambda row: -row.length):
        if packs and shared_tokens([*packs[-1], row]) <= budget_tokens:
            packs[-1] += (row,)
        else:
            packs.append((row,))
    return packs


def _padded_tokens(rows: Sequence[Row]) -> int:
    return len(rows) * _longest(rows)


def _longest(rows: Sequence[Row]) -> int:
    return max(row.length for row in rows)


_PADDED = _Way(size=_padded_tokens, cut=pack)
_SHARED = _Way(size=shared_tokens, cut=_cut_shared)
