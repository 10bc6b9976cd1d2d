"""A dataset that is read while it is used: rows → samples → prompts, block after block, pass after pass.

A block is as many rows as the buffer holds, in the order of the dataset; its prompts are shuffled by the seed and the
block. So the next prompt depends on the seed and the position alone, and a position is where a block begins and how
much of it was asked: nothing of a buffer is lost on a resume.

Place in the flow: hub → **stream** → feed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from grpo_core.data.hub import HubStream, open_stream
from grpo_core.data.prompts import Prompt
from grpo_core.data.samples import LoadedSamples, SampleMaker, prompt_key, with_all
from grpo_core.data.sources import Purpose
from grpo_core.errors import DataError
from grpo_core.plugins.references import parse_reference
from grpo_core.recipe.plan import PlannedDataset
from grpo_core.types import BuildContext, Sample

__all__ = ["PromptStream", "SampleStream", "open_samples"]


def open_samples(dataset: PlannedDataset, split: Purpose, context: BuildContext) -> SampleStream:
    """Open a dataset that is streamed; raises `DataError` when it cannot be reached."""
    reference, buffer_rows = parse_reference(dataset.reference), dataset.buffer_rows
    assert buffer_rows is not None
    subset, asked = reference.details.get("subset"), reference.details.get("split")
    rows = open_stream(reference.value, subset=subset, split=asked, purpose=split)
    maker = SampleMaker(dataset, split, context)
    return SampleStream(rows, maker, buffer_rows=buffer_rows, reference=dataset.reference)


class SampleStream:
    """The samples of a streamed dataset, one block at a time."""

    def __init__(self, rows: HubStream, maker: SampleMaker, *, buffer_rows: int, reference: str) -> None:
        self.rows = rows
        """Where the rows come from; its position is that of the next block."""
        self._maker, self._buffer_rows, self._reference = maker, buffer_rows, reference
        self._excluded: Collection[object] = ()
        self._columns: Iterable[str] = ()

    def exclude(self, prompts: Collection[object]) -> None:
        """Leave out samples with one of these prompts (see `prompt_key`), which are evaluation prompts."""
        self._excluded = prompts

    def fill(self, columns: Iterable[str]) -> None:
        """Give every sample these columns, None where it has none."""
        self._columns = columns

    def read_block(self) -> LoadedSamples:
        """The samples of the next block that has any. Raises `DataError` when a whole pass has none."""
        start = self.rows.passes
        while self.rows.passes < start + 2:
            loaded = self._maker(self.rows.read(self._buffer_rows))
            kept = [with_all(each, self._columns) for each in loaded.samples if prompt_key(each) not in self._excluded]
            if kept:
                return LoadedSamples(
                    samples=tuple(kept), columns=loaded.columns, dropped=loaded.dropped, warnings=loaded.warnings
                )
        raise DataError(
            f"{self._reference}: no row is left in a whole pass: all were dropped, or are evaluation rows",
            hint="`grpoctl datasets preview` shows what becomes of the rows.",
        )

    def first_block(self) -> LoadedSamples:
        """The first samples; the position stays where it is."""
        position = self.rows.position()
        self._restart()
        block = self.read_block()
        self.rows.seek(position)
        return block

    def first(self, count: int) -> tuple[Sample, ...]:
        """The first samples with `count` different prompts; the position stays where it is. Raises `DataError` when
        there are not so many."""
        position, found = self.rows.position(), dict[object, Sample]()
        self._restart()
        while len(found) < count:
            block = self.read_block()
            if self.rows.passes:
                raise DataError(f"{self._reference}: has {len(found)} different prompts, and {count} are asked for")
            for sample in block.samples:
                found.setdefault(prompt_key(sample), sample)
        self.rows.seek(position)
        return tuple(found.values())[:count]

    def _restart(self) -> None:
        self.rows.seek({"passes": 0, "rows_read": 0, "library": None})


class PromptStream:
    """The prompts of a streamed dataset, one at a time."""

    def __init__(
        self,
        samples: SampleStream,
        render: Callable[[Sequence[Sample]], Sequence[Prompt]],
        *,
        seed: int,
        shuffles: bool = True,
    ) -> None:
        """`render` leaves out those that are too long; `shuffles` says whether the prompts of a block are shuffled."""
        self._samples, self._render, self._seed, self._shuffles = samples, render, seed, shuffles
        self._offset = self._passes = 0
        self._start = samples.rows.position()
        self._block: list[Prompt] = []

    @property
    def passes(self) -> int:
        """How often the whole dataset was asked."""
        return self._passes

    def take(self) -> Prompt:
        """The next prompt."""
        if self._offset == len(self._block):
            self._read_block()
        self._offset += 1
        return self._block[self._offset - 1]

    def state(self) -> dict[str, Any]:
        """What `restore` needs to go on, as JSON values."""
        return {"offset": self._offset, "start": self._start, "digest": _digest(self._block)}

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Go on where `state` was given; False when the rows there are not what they were."""
        self._samples.rows.seek(state["start"])
        self._start, self._block = state["start"], []
        if state["offset"]:
            self._read_block()
        self._offset = min(state["offset"], len(self._block))
        return bool(_digest(self._block) == state["digest"])

    def _read_block(self) -> None:
        """Read on to the next block with a prompt in it."""
        limit = self._samples.rows.passes + 2
        self._block, self._offset = [], 0
        while not self._block:
            self._start = self._samples.rows.position()
            self._block = list(self._render(self._samples.read_block().samples))
            if self._samples.rows.passes >= limit:
                raise DataError("no prompt of a whole pass over a streamed dataset is short enough")
        self._passes = self._samples.rows.passes
        if self._shuffles:
            seed = f"rows of a stream {self._seed} {self._start['passes']} {self._start['rows_read']}"
            Random(seed).shuffle(self._block)


def _digest(prompts: Sequence[Prompt]) -> str:
    digest = hashlib.sha256()
    for prompt in prompts:
        digest.update(f"{prompt.sample.id} {prompt.text}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
