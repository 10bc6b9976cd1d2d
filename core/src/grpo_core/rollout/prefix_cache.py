"""Keys and values of a batch whose sequences share prompts: each prompt's once, each sequence's own beside them.

Nothing is copied when a token is added or a sequence leaves: own keys and values live in buffers that grow by
doubling, and the place of a sequence that left is taken by another. Who attends to what is `prefix_attention.py`.

Shapes: P prompts, S seats a prompt, B sequences, K key-value heads, D of one head, L prompt columns (padded on the
left), C columns of the buffers, T own tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

__all__ = ["PrefixCache", "PrefixLayer", "Seating"]

FIRST_COLUMNS = 64


@dataclass(frozen=True, slots=True)
class Seating:
    """Which sequence answers which prompt, as indices for tensors."""

    prompts: int
    """P."""
    seats: int
    """S, the most sequences that any prompt has."""
    seat_B: Tensor
    """Of each sequence: prompt * S + its place among the sequences of this prompt."""
    sequence_PS: Tensor
    """[P * S] The sequence in each seat; any sequence in an empty one."""

    @classmethod
    def of(cls, prompt_of: Sequence[int], prompts: int, device: torch.device) -> Seating:
        """Seat the sequences, given each one's prompt."""
        places: list[int] = []
        taken = [0] * prompts
        for prompt in prompt_of:
            places.append(taken[prompt])
            taken[prompt] += 1
        seats = max(taken)
        seat_B = torch.tensor([p * seats + place for p, place in zip(prompt_of, places, strict=True)])
        sequence_PS = torch.zeros(prompts * seats, dtype=torch.int64)
        sequence_PS[seat_B] = torch.arange(len(prompt_of))
        return cls(prompts, seats, seat_B.to(device), sequence_PS.to(device))


class PrefixLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer. The attention function reads its tensors; what `update` returns is only the new token's."""

    is_sliding = False

    def __init__(self, prompt_keys_PKLD: Tensor, prompt_values_PKLD: Tensor, sequences: int, max_columns: int) -> None:
        super().__init__()
        self.prompt_keys_PKLD = prompt_keys_PKLD
        self.prompt_values_PKLD = prompt_values_PKLD
        self._sequences = sequences
        self._columns = 0
        self._max_columns = max_columns
        self._buffers = self._empty(min(FIRST_COLUMNS, max_columns))
        self.is_initialized = True

    @property
    def own_keys(self) -> Tensor:
        """[B, K, T, D] A view."""
        return self._buffers[0, : self._sequences, :, : self._columns]

    @property
    def own_values(self) -> Tensor:
        """[B, K, T, D] A view."""
        return self._buffers[1, : self._sequences, :, : self._columns]

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Append one token a sequence: [B, K, 1, D] each."""
        if self._columns == self._buffers.shape[3]:
            self._grow()
        self._buffers[0, : self._sequences, :, self._columns] = key_states[:, :, 0]
        self._buffers[1, : self._sequences, :, self._columns] = value_states[:, :, 0]
        self._columns += 1
        return key_states, value_states

    def keep(self, holes: Tensor, fillers: Tensor, sequences: int) -> None:
        """Put sequences `fillers` where `holes` are and forget those from `sequences` on."""
        self._buffers[:, holes, :, : self._columns] = self._buffers[:, fillers, :, : self._columns]
        self._sequences = sequences

    def keep_prompts(self, prompts: Tensor) -> None:
        """Go on with these prompts only."""
        self.prompt_keys_PKLD = self.prompt_keys_PKLD[prompts]
        self.prompt_values_PKLD = self.prompt_values_PKLD[prompts]

    def get_seq_length(self) -> int:
        """Columns so far, those of the prompt included."""
        return self.prompt_keys_PKLD.shape[2] + self._columns

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Not used: the attention function needs no mask."""
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        """No limit of its own."""
        return -1

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Done by `__init__`."""

    def _empty(self, columns: int) -> Tensor:
        _, heads, _, width = self.prompt_keys_PKLD.shape
        return self.prompt_keys_PKLD.new_empty(2, self._sequences, heads, columns, width)

    def _grow(self) -> None:
        grown = self._empty(min(2 * self._columns, self._max_columns))
        grown[:, :, :, : self._columns] = self._buffers[:, : self._sequences]
        self._buffers = grown


class PrefixCache(Cache):  # type: ignore[misc]
    """All layers, and what they have in common."""

    layers: list[PrefixLayer]

    def __init__(self, layers: list[PrefixLayer], padding_PL: Tensor | None, prompt_of: Sequence[int]) -> None:
        super().__init__(layers=layers)
        self.padding_PL = padding_PL
        """Added to scores: 0, and at padding the least fp32 (a window may show nothing else, whose share is then 0 and
        not NaN). None: there is no padding."""
        self._device = layers[0].prompt_keys_PKLD.device
        self._prompt_of = list(prompt_of)
        self.seating = Seating.of(self._prompt_of, len(layers[0].prompt_keys_PKLD), self._device)

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        moved = [(i, row) for i, row in enumerate(rows) if i != row]
        holes, fillers = (torch.tensor(side, device=self._device, dtype=torch.int64) for side in _columns(moved))
        for layer in self.layers:
            layer.keep(holes, fillers, len(rows))
        self._prompt_of = [self._prompt_of[row] for row in rows]
        self._forget_prompts()
        self.seating = Seating.of(self._prompt_of, len(self.layers[0].prompt_keys_PKLD), self._device)

    def _forget_prompts(self) -> None:
        """Once half of the prompts have no sequence any more, forget these: it costs a copy of the others."""
        live = sorted(set(self._prompt_of))
        if 2 * len(live) > len(self.layers[0].prompt_keys_PKLD):
            return
        prompts = torch.tensor(live, device=self._device)
        for layer in self.layers:
            layer.keep_prompts(prompts)
        if self.padding_PL is not None:
            self.padding_PL = self.padding_PL[prompts]
        number = {prompt: i for i, prompt in enumerate(live)}
        self._prompt_of = [number[prompt] for prompt in self._prompt_of]


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [left for left, _ in pairs], [right for _, right in pairs]
