"""Chooses how a model decodes: the fastest way that gives the logits of forwards over whole sequences.

    shared prefixes → its own cache → its own cache, no mask for steps → whole forwards

Every way but the last is checked, once a model, on the first prompts it is asked, and once more on the first with
images where those were texts: a family with memory or attention of a kind that a way does not serve is found out here,
and the run is slower instead of wrong. Nothing is drawn at random, and none of the numbers is used again.

Shapes: N checked places (a sequence, and how far it has come), V vocabulary.
"""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from grpo_core.errors import RolloutError
from grpo_core.model.attention import has_plain_layers
from grpo_core.model.image_features import own_arguments, position_rows
from grpo_core.model.routers import router_arguments
from grpo_core.rollout.forward import Decoder, call, decoding, keeps_few_logits, takes_positions
from grpo_core.rollout.plain import PlainDecoder
from grpo_core.rollout.prefix import PrefixDecoder
from grpo_core.rollout.prompts import Prompts, text_prompts
from grpo_core.rollout.whole import WholeDecoder

__all__ = ["MakeDecoder", "Ways", "choose_decoder", "slowest_way"]

MakeDecoder = Callable[[int], Decoder]
"""Given the most tokens of a completion, a decoder for one wave."""

CHECKED_MEMBERS = 2
CHECKED_TOKENS = 3
KEPT_ROWS = (3, 0, 1)
"""Of two members each of two prompts, those that go on after the first token, in this order."""
MAX_MEAN_GAP_NATS = {torch.float32: 1e-3, torch.float64: 1e-6}
MAX_MEAN_GAP_LOW_PRECISION_NATS = 0.05
"""Mean difference of all tokens' log-probabilities."""
MAX_GAP_SHARE = {torch.float32: 0.01, torch.float64: 1e-4}
MAX_GAP_SHARE_LOW_PRECISION = 0.05
"""The same as a share of how much these differ from place to place: where logits are small, so is what is wrong."""
ROUNDING_NATS = {torch.float32: 1e-6, torch.float64: 1e-12}
ROUNDING_LOW_PRECISION_NATS = 4e-3
"""A gap that says nothing, whatever its share."""
REASON_WIDTH = 160

_log = logging.getLogger(__name__)


def choose_decoder(model: Any, prompts: Sequence[Sequence[int]], *, prefill_tokens: int) -> MakeDecoder:
    """The fastest way that is right on the shortest and the longest of the prompts, which are texts; warns when it is a
    slower one."""
    ways = Ways(model, prefill_tokens=prefill_tokens)
    return ways.make(ways.choose(text_prompts(prompts)))


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to decode."""

    make: MakeDecoder
    name: str
    """With what."""
    trouble: str
    """What an error of the model's own code means."""
    slack: float = 1.0
    """How many times the usual limits it may be off: without it decoding is many times slower."""
    refuse: Callable[[], str | None] = lambda: None
    """Why the model is not even tried; None: it is."""


class Ways:
    """The ways in which a model may decode, by number: the fastest is 0."""

    def __init__(self, model: Any, *, prefill_tokens: int) -> None:
        self._model = model
        own_cache = "with its own cache", "it does not take transformers' cache", 2.0
        self._ways = (
            _Way(
                lambda max_tokens: PrefixDecoder(model, max_tokens=max_tokens, prefill_tokens=prefill_tokens),
                "with shared prefixes",
                "its attention does not take the shared prefix",
                refuse=lambda: _unfit_for_prefixes(model),
            ),
            _Way(lambda _: PlainDecoder(model), *own_cache),
            _Way(lambda _: PlainDecoder(model, masks_steps=False), *own_cache),
        )
        self._whole = _Way(
            lambda _: WholeDecoder(model, budget_tokens=prefill_tokens), "with whole forwards", "it fails of its images"
        )

    def make(self, way: int) -> MakeDecoder:
        """What makes decoders of a way."""
        return self._ways[way].make if way < len(self._ways) else self._whole.make

    def choose(self, prompts: Prompts) -> int:
        """Check one way after the other, and say which one it is. Raises `RolloutError` where images are read in
        another way than the model's own."""
        faults: list[str] = []
        with decoding(self._model):
            trial = _Trial(self._model, _checked(prompts))
            for way, tried in enumerate(self._ways):
                fault = tried.refuse() or trial.fault(tried)
                if fault is None:
                    self._say(way, faults)
                    return way
                faults.append(fault)
            if any(prompts.pixels) and (fault := trial.fault(self._whole)):
                raise RolloutError(
                    f"{type(self._model).__name__} makes something else of images that are encoded once: {fault}",
                    hint="such a family cannot be trained with images here; docs/vision.md lists those that can",
                )
        self._say(len(self._ways), faults)
        return len(self._ways)

    def _say(self, way: int, faults: Sequence[str]) -> None:
        name = type(self._model).__name__
        if way == 0:
            _log.info("%s decodes with shared prefixes", name)
        elif way < len(self._ways):
            words = "%s decodes the plain way, slower and every completion with a copy of its prompt's cache: %s"
            _log.warning(words, name, faults[0])
        else:
            words = (
                "%s cannot be decoded step by step, so every token is drawn after a forward over all tokens before it, "
                "many times slower: %s"
            )
            _log.warning(words, name, faults[1])


def slowest_way(way: int | None, world_size: int) -> int | None:
    """The slowest way that any rank has chosen, on their own prompts, for all of them to go on with; None: none has."""
    if world_size == 1 or not dist.is_initialized():
        return way
    slowest = torch.tensor(-1 if way is None else way)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return None if slowest < 0 else int(slowest)


def _unfit_for_prefixes(model: Any) -> str | None:
    if not has_plain_layers(model):
        return "it has layers other than full and sliding-window attention"
    return None if takes_positions(model) else "it takes no position ids"


def _checked(prompts: Prompts) -> Prompts:
    """Two prompts of different length, so that there is padding: the shortest and the longest (with images, where any
    has them), or of one that is as long as all others its end and all of it."""
    by_length = sorted(range(len(prompts)), key=lambda place: len(prompts.ids[place]))
    seeing = [place for place in by_length if prompts.pixels[place] is not None] or by_length
    shortest, longest = by_length[0], seeing[-1]
    ids = prompts.ids[longest]
    if len(prompts.ids[shortest]) < len(ids):
        return prompts.part([shortest, longest])
    rows = len(prompts.positions[longest])
    if prompts.pixels[longest] is not None:
        return prompts.part([longest]).behind(text_prompts([prompts.without_images(longest)], rows))
    whole = ids * 2 if len(ids) == 1 else ids
    return text_prompts([whole[len(whole) // 2 :], whole], rows)


class _Trial:
    """A few tokens decoded after two prompts, and what forwards over the whole sequences say about them."""

    def __init__(self, model: Any, prompts: Prompts) -> None:
        self._model = model
        self._prompts = prompts
        rows = [list(prompt) for prompt in prompts.ids for _ in range(CHECKED_MEMBERS)]
        self._moments = [rows]
        said = [prompts.without_images(place) for place in range(len(prompts)) for _ in range(CHECKED_MEMBERS)]
        for moment in range(CHECKED_TOKENS):
            if moment == 1:
                rows, said = [rows[row] for row in KEPT_ROWS], [said[row] for row in KEPT_ROWS]
            words = [[*own, *row[len(row) - moment :]] for own, row in zip(said, rows, strict=True)]
            following = [own[(place + moment) % len(own)] for place, own in enumerate(words)]
            rows = [[*row, token] for row, token in zip(rows, following, strict=True)]
            self._moments.append(rows)
        self._expected_NV = self._whole_logits().double().log_softmax(-1)

    def fault(self, way: _Way) -> str | None:
        """What is wrong with a way to decode; None: it gives the logits that are expected."""
        try:
            found_NV = self._decoded(way.make(CHECKED_TOKENS))
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # noqa: BLE001  a family's own code, given a cache that it may not know
            reason = textwrap.shorten(str(error), REASON_WIDTH, placeholder=" …")
            return f"{way.trouble} ({type(error).__name__}: {reason})"
        fault = _difference(self._expected_NV, found_NV.double().log_softmax(-1), self._model.dtype, way.slack)
        return fault and f"{way.name} {fault}"

    def _decoded(self, decoder: Decoder) -> Tensor:
        logits = [decoder.prefill(self._prompts, [CHECKED_MEMBERS] * len(self._prompts))]
        for moment, rows in enumerate(self._moments[1:]):
            if moment == 1:
                decoder.keep(KEPT_ROWS)
            logits.append(decoder.step(torch.tensor([row[-1] for row in rows], device=logits[0].device)))
        return torch.cat(logits)

    def _whole_logits(self) -> Tensor:
        """[N, V] Each sequence alone, without padding and cache; the logits of its beginnings come with it."""
        seen: dict[tuple[int, ...], Tensor] = {}
        for row in sorted((row for rows in self._moments for row in rows), key=len, reverse=True):
            if tuple(row) in seen:
                continue
            ids_1T = torch.tensor([row], device=self._model.device)
            last = min(len(row), CHECKED_TOKENS + 1)
            logits_TV = self._forward(ids_1T, last).logits[0, -last:]
            seen |= {tuple(row[: len(row) - back]): logits_TV[last - 1 - back] for back in range(last)}
        return torch.stack([seen[tuple(row)] for rows in self._moments for row in rows])

    def _forward(self, ids_1T: Tensor, last: int) -> Any:
        """What the model itself makes of a sequence, its images and their positions included."""
        row = tuple(ids_1T[0].tolist())
        pixels = next(
            (
                own
                for ids, own in zip(self._prompts.ids, self._prompts.pixels, strict=True)
                if own is not None and row[: len(ids)] == ids
            ),
            None,
        )
        if pixels is None:
            positions_R1T = text_prompts([row], position_rows(self._model)).padded_positions(len(row))
            return call(self._model, ids_1T, positions_R1T.to(ids_1T.device), keep=last)
        return self._model(
            ids_1T,
            use_cache=False,
            **own_arguments(self._model, ids_1T, [pixels]),
            **({"logits_to_keep": last} if keeps_few_logits(self._model) else {}),
            **router_arguments(self._model, asked=False),
        )


def _difference(expected_NV: Tensor, found_NV: Tensor, dtype: torch.dtype, slack: float) -> str | None:
    if expected_NV.isnan().any():
        return None  # NaN weights are reported where tokens are drawn
    gap = float(torch.where(expected_NV == found_NV, 0.0, (expected_NV - found_NV).abs()).mean())
    spread = float((expected_NV - expected_NV.mean(0)).nan_to_num(0.0).abs().mean())
    share = MAX_GAP_SHARE.get(dtype, MAX_GAP_SHARE_LOW_PRECISION) * spread
    least = ROUNDING_NATS.get(dtype, ROUNDING_LOW_PRECISION_NATS)
    limit = slack * min(MAX_MEAN_GAP_NATS.get(dtype, MAX_MEAN_GAP_LOW_PRECISION_NATS), max(share, least))
    if gap <= limit:
        return None
    return f"its log-probabilities are {gap:.2g} nats off (at most {limit:.2g} was expected)"
