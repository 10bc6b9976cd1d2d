"""Which micro-batches share what the vision tower makes of their prompts' images.

    rows → rounds of micro-batches: groups with images, a group whole in one round; then what is text only

A round's images are encoded once, at its beginning, and one backward pass goes through the tower, at its end. So the
graph of one round's images is alive at a time, and ranks that begin and end rounds together call the tower together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grpo_core.trainer.microbatch import Row, pack

__all__ = ["Round", "plan_rounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Some micro-batches of a pass, one after the other."""

    packs: tuple[tuple[Row, ...], ...]
    """At least one micro-batch."""
    has_images: bool = False
    """Whether the tower runs for it, on every rank."""

    @property
    def groups(self) -> tuple[int, ...]:
        """The groups of its rows that have images, each once."""
        return tuple(dict.fromkeys(row.group for rows in self.packs for row in rows if row.images))


def plan_rounds(rows: Sequence[Row], budget_tokens: int) -> list[Round]:
    """Micro-batches of at most `budget_tokens` padded tokens, in rounds; at least one of each.

    Several groups with images are one micro-batch, and a round, while they fit; one that does not fit is several
    micro-batches and a round of its own. Groups with the longest rows come first. Rows without an image are packed as
    if there were no others.
    """
    groups: dict[int, list[Row]] = {}
    for row in rows:
        if row.images:
            groups.setdefault(row.group, []).append(row)
    rounds: list[Round] = []
    open_rows: tuple[Row, ...] = ()
    for group in sorted(groups.values(), key=lambda group: -_longest(group)):
        if open_rows and (len(open_rows) + len(group)) * _longest(open_rows) <= budget_tokens:
            open_rows += tuple(group)
            rounds[-1] = Round(packs=(open_rows,), has_images=True)
        else:
            packs = tuple(pack(group, budget_tokens))
            open_rows = packs[0] if len(packs) == 1 else ()
            rounds.append(Round(packs=packs, has_images=True))
    text = [row for row in rows if not row.images]
    if text or not rounds:
        rounds.append(Round(packs=tuple(pack(text, budget_tokens))))
    return rounds


def _longest(rows: Sequence[Row]) -> int:
    return max(row.length for row in rows)
