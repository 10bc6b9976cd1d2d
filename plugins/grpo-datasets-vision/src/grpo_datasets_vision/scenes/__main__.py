"""`python -m grpo_datasets_vision.scenes OUT.jpg`: draw a sheet of scenes, to look at."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import get_args

from PIL import Image

from grpo_datasets_vision.options import ClevrCountOptions
from grpo_datasets_vision.scenes.problem import Question
from grpo_datasets_vision.scenes.source import scenes

_GAP = 6


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sheet, and print what is asked about each scene, row by row, with the answer."""
    parser = argparse.ArgumentParser(prog="python -m grpo_datasets_vision.scenes")
    parser.add_argument("out", type=Path, metavar="OUT.jpg", help="the picture to write, JPEG or PNG")
    parser.add_argument("--pixels", type=int, default=224, help="of a scene's side; default: 224")
    parser.add_argument("--columns", type=int, default=4, help="default: 4")
    parser.add_argument("--rows", type=int, default=2, help="default: 2")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    given = parser.parse_args(arguments)
    try:
        options = ClevrCountOptions(pixels=given.pixels, questions=get_args(Question))
        columns, rows = (_at_least_one(given.columns, "columns"), _at_least_one(given.rows, "rows"))
        sheet = _draw(options, columns, rows, given.seed)
        sheet.save(given.out, quality=90)  # what PNG has no use for
    except (
        ValueError,
        OSError,
    ) as error:  # a setting out of range, a name that is no picture's, a folder that is missing
        parser.error(str(error))


def _draw(options: ClevrCountOptions, columns: int, rows: int, seed: int) -> Image.Image:
    step = options.pixels + _GAP
    sheet = Image.new("RGB", (columns * step - _GAP, rows * step - _GAP), "white")
    shown = islice(scenes(options, split="train", seed=seed), columns * rows)
    for place, (problem, picture) in enumerate(shown):
        sheet.paste(picture, (place % columns * step, place // columns * step))
        print(f"{problem.question} {problem.answer}")
    return sheet


def _at_least_one(number: int, what: str) -> int:
    if number < 1:
        raise ValueError(f"--{what} {number}: at least 1")
    return number


if __name__ == "__main__":
    main()
