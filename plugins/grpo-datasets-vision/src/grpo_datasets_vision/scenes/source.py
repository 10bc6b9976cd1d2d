"""Rows of `clevr_count` without a download: exact, seeded, and never the same scene in training and evaluation.

Which split a scene belongs to is a property of the scene itself (a hash of where what stands), so no seeds or options
can make the splits overlap. Rows come one by one, as they are asked for.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from random import Random
from typing import Literal

from PIL import Image

from grpo_datasets_vision.options import ClevrCountOptions
from grpo_datasets_vision.scenes.layout import place
from grpo_datasets_vision.scenes.problem import Problem, draw_problem
from grpo_datasets_vision.scenes.render import GROUND_SHADES, render
from grpo_datasets_vision.scenes.solid import Solid

__all__ = ["rows", "scenes", "split_of"]

Split = Literal["train", "evaluation"]

_EVALUATION_SHARE = 1 / 6


def rows(options: ClevrCountOptions, *, split: Split, seed: int) -> Iterator[Mapping[str, object]]:
    """Yield rows with the hub's columns `image` (PNG), `problem` and `solution`: `options.rows` for training, for
    evaluation without an end."""
    wanted = options.rows if split == "train" else None
    for problem, picture in islice(scenes(options, split=split, seed=seed), wanted):
        yield {
            "image": _png(picture),
            "problem": problem.question,
            "solution": f"<answer> {problem.answer} </answer>",
        }


def scenes(options: ClevrCountOptions, *, split: Split, seed: int) -> Iterator[tuple[Problem, Image.Image]]:
    """Yield the problems of a split with their pictures, without an end."""
    random = Random(f"clevr_count {split} {seed}")
    while True:
        problem = draw_problem(
            random,
            random.choice(options.questions),
            low=options.min_count,
            high=options.max_count,
            most=options.max_objects,
        )
        solids, shade = place(random, problem.kinds), random.choice(GROUND_SHADES)
        if split_of(solids) == split:
            yield problem, render(solids, pixels=options.pixels, shade=shade)


def split_of(solids: Sequence[Solid]) -> Split:
    """The split that a scene belongs to, whatever made it and whatever is asked about it."""
    text = repr([(solid.kind, round(solid.x, 3), round(solid.y, 3)) for solid in solids])
    number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
    return "evaluation" if number < _EVALUATION_SHARE * 2**64 else "train"


def _png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, format="PNG", compress_level=1)
    return file.getvalue()
