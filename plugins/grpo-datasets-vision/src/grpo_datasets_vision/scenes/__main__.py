"""`python -m grpo_datasets_vision.scenes OUT.png`: draw a sheet of scenes, to look at."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from PIL import Image

from grpo_datasets_vision.options import ClevrCountOptions
from grpo_datasets_vision.scenes.source import scenes

_GAP = 6


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sheet, and print what is asked about each scene, row by row, with the answer."""
    parser = argparse.ArgumentParser(prog="python -m grpo_datasets_vision.scenes")
    parser.add_argument("out", type=Path, metavar="OUT.png", help="the picture to write")
    parser.add_argument("--pixels", type=int, default=224, help="of a scene's side; default: 224")
    parser.add_argument("--columns", type=int, default=4, help="default: 4")
    parser.add_argument("--rows", type=int, default=2, help="default: 2")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    given = parser.parse_args(arguments)
    options = ClevrCountOptions(pixels=given.pixels, questions=("all", "colour", "shape", "material", "both"))
    step = given.pixels + _GAP
    sheet = Image.new("RGB", (given.columns * step - _GAP, given.rows * step - _GAP), "white")
    shown = islice(scenes(options, split="train", seed=given.seed), given.columns * given.rows)
    for place, (problem, picture) in enumerate(shown):
        sheet.paste(picture, (place % given.columns * step, place // given.columns * step))
        print(f"{problem.question} {problem.answer}")
    sheet.save(given.out)


if __name__ == "__main__":
    main()
