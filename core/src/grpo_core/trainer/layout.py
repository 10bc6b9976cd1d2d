"""Where completions and their prompts lie among the tokens of a forward pass.

    padded   a row for each completion:  prompt completion …, prompt completion …
    shared   one row, prompts once:      prompt completion completion …, prompt completion …

Both are read by the same code: a completion is a span of its prompt's tokens and a span of its own.

Shapes: B sequences, T tokens, N completion tokens of all rows, row after row, R rows of positions (3 for M-RoPE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from grpo_core.trainer.images import Opaque, RoundImages, RowImages
from grpo_core.trainer.rows import Row

__all__ = ["ForwardInputs", "Layout", "Prefix", "Span", "forward_inputs"]


class Span(NamedTuple):
    """One completion's places among the flattened tokens [B*T]; its last token predicts nothing and is not there."""

    prompt: int
    prompt_tokens: int
    own: int
    own_tokens: int

    @property
    def length(self) -> int:
        """How many tokens a forward of this completion alone has."""
        return self.prompt_tokens + self.own_tokens

    @property
    def tokens(self) -> list[int]:
        """[length] Its own places, prompt first."""
        return [*range(self.prompt, self.prompt + self.prompt_tokens), *range(self.own, self.own + self.own_tokens)]

    @property
    def picked(self) -> list[int]:
        """[own_tokens + 1] The tokens that predict the completion's: the prompt's last one and its own."""
        return [self.prompt + self.prompt_tokens - 1, *range(self.own, self.own + self.own_tokens)]


class Prefix(NamedTuple):
    """One prompt and the completions that follow it, next to each other."""

    start: int
    prompt_tokens: int
    own_tokens: tuple[int, ...]
    """Of each completion; may be 0."""

    @property
    def own(self) -> int:
        """Where the completions begin."""
        return self.start + self.prompt_tokens

    @property
    def end(self) -> int:
        """The first place behind them."""
        return self.own + sum(self.own_tokens)


@dataclass(frozen=True)
class Layout:
    """The places of some completions."""

    spans: tuple[Span, ...]
    """[rows]"""
    prefixes: tuple[Prefix, ...] = ()
    """Every prompt once; empty: each completion has its prompt in a row of its own."""

    @property
    def is_shared(self) -> bool:
        """Whether prompts are there once."""
        return bool(self.prefixes)

    @cached_property
    def longest(self) -> int:
        """Tokens of the longest completion with its prompt."""
        return max(span.length for span in self.spans)

    @cached_property
    def sequences(self) -> Tensor:
        """[T] Which completion each token of a shared row belongs to; -1 - g for the prompt of prefix g."""
        parts, count = [], 0
        for g, prefix in enumerate(self.prefixes):
            parts.append(torch.full((prefix.prompt_tokens,), -1 - g))
            for tokens in prefix.own_tokens:
                parts.append(torch.full((tokens,), count))
                count += 1
        return torch.cat(parts)

    @cached_property
    def prefix_numbers(self) -> Tensor:
        """[T] Which prefix each token of a shared row belongs to."""
        return torch.cat([torch.full((each.end - each.start,), g) for g, each in enumerate(self.prefixes)])

    @cached_property
    def offsets(self) -> Tensor:
        """[T] How many tokens stand before each one in its own sequence, the prompt's among them."""
        parts = []
        for prefix in self.prefixes:
            parts.append(torch.arange(prefix.prompt_tokens))
            parts += [torch.arange(tokens) + prefix.prompt_tokens for tokens in prefix.own_tokens]
        return torch.cat(parts)


class ForwardInputs(NamedTuple):
    """What the model is given, and which of its hidden states are wanted."""

    input_ids_BT: Tensor
    """Right-padded, or one row of prompts and completions. The last token of a completion predicts nothing that
    counts, so it is not there."""
    position_ids: Tensor
    """[B, T] 0, 1, 2, … in each sequence; [3, B, T] for a model with M-RoPE, where images count by their sides."""
    picked_N: Tensor
    """Indices into the flattened [B*T] hidden states: those that predict a completion's tokens."""
    targets_N: Tensor
    """The completions' tokens."""
    counted_N: Tensor
    """bool: which of them are in the loss."""
    layout: Opaque[Layout]
    """Where the rows lie."""
    images: Opaque[RowImages] | None = None
    """None: no rank has an image in this micro-batch, nor in those of its round."""

    @property
    def image_arguments(self) -> dict[str, object]:
        """Those of the forward of all tokens."""
        if self.images is None:
            return {}
        places = self.images.value.places
        return self.images.value.features.arguments(
            tuple(dict.fromkeys(places)) if self.layout.value.is_shared else places
        )


def forward_inputs(
    rows: Sequence[Row], device: torch.device, images: RoundImages | None, *, shared: bool = False
) -> ForwardInputs:
    """The tensors of some rows; where `shared`, rows of one prompt are neighbours, and their prompt is there once."""
    layout = _shared(rows) if shared else _padded(rows)
    tokens = [torch.tensor(row.prompt_ids + row.member.token_ids[:-1]) for row in rows]
    # Behind a padded row's end positions count on: a second 0 would be taken for another sequence.
    longest = max(row.length for row in rows)
    positions = [_positions(row, images, row.length if shared else longest) for row in rows]
    targets = [torch.tensor(row.member.token_ids) for row in rows]
    counted = [torch.tensor([row.member.in_loss] * len(row.member.token_ids)) for row in rows]
    join = _joined if shared else _stacked
    positions_RBT = join(positions, layout)
    return ForwardInputs(
        input_ids_BT=join([ids[None] for ids in tokens], layout)[0].to(device),
        position_ids=(positions_RBT if len(positions_RBT) > 1 else positions_RBT[0]).to(device),
        picked_N=torch.tensor([place for span in layout.spans for place in span.picked], device=device),
        targets_N=torch.cat(targets).to(device),
        counted_N=torch.cat(counted).to(device),
        layout=Opaque(layout),
        images=None if images is None else images.of_rows([row.group for row in rows]),
    )


def _padded(rows: Sequence[Row]) -> Layout:
    T = max(row.length for row in rows)
    prompts = [len(row.prompt_ids) for row in rows]
    return Layout(
        tuple(Span(b * T, P, b * T + P, row.length - P) for b, (P, row) in enumerate(zip(prompts, rows, strict=True)))
    )


def _shared(rows: Sequence[Row]) -> Layout:
    spans: list[Span] = []
    prefixes: list[Prefix] = []
    groups: list[int] = []
    for row in rows:
        if groups[-1:] != [row.group]:
            groups.append(row.group)
            prefixes.append(Prefix(prefixes[-1].end if prefixes else 0, len(row.prompt_ids), ()))
        last = prefixes[-1]
        spans.append(Span(last.start, last.prompt_tokens, last.end, row.length - last.prompt_tokens))
        prefixes[-1] = last._replace(own_tokens=(*last.own_tokens, row.length - last.prompt_tokens))
    return Layout(tuple(spans), tuple(prefixes))


def _stacked(values: Sequence[Tensor], layout: Layout) -> Tensor:
    """[R, B, T] Of [R, tokens] each; 0 at padding, which is behind what counts."""
    return pad_sequence([each.T for each in values], batch_first=True).permute(2, 0, 1).contiguous()


def _joined(values: Sequence[Tensor], layout: Layout) -> Tensor:
    """[R, 1, T] Of [R, tokens] each: a prompt's tokens from the first of its rows."""
    parts, start = [], -1
    for each, span in zip(values, layout.spans, strict=True):
        parts.append(each if span.prompt > start else each[:, span.prompt_tokens :])
        start = span.prompt
    return torch.cat(parts, dim=1)[:, None]


def _positions(row: Row, images: RoundImages | None, tokens: int) -> Tensor:
    """[R, tokens]"""
    if images is None:
        return torch.arange(tokens)[None]
    return images.positions_of(row.group, len(row.prompt_ids), tokens)
