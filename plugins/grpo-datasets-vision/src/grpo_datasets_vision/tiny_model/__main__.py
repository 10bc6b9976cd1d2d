"""`python -m grpo_datasets_vision.tiny_model OUT`: make the tiny model, in some minutes on two CPU cores."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from transformers.utils import logging

from grpo_datasets_vision.tiny_model.folder import write_folder
from grpo_datasets_vision.tiny_model.model import fresh_model
from grpo_datasets_vision.tiny_model.tokenizer import build_vision_tokenizer
from grpo_datasets_vision.tiny_model.warm_up import WarmUp, warm_up

_SHOW_EVERY_UPDATES = 50
_HELP = {
    "updates": "optimiser updates of the warm-up",
    "batch": "scenes of one update",
    "pool": "different scenes",
    "learning_rate": "at its peak",
    "seed": "of weights, scenes and answers",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the model that the recipe `clevr-count-tiny` trains."""
    logging.disable_progress_bar()
    parser = argparse.ArgumentParser(prog="python -m grpo_datasets_vision.tiny_model")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    for name, default in asdict(WarmUp()).items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=type(default), default=default, help=f"{_HELP[name]}; default: {default}")
    given = parser.parse_args(arguments)
    settings = WarmUp(**{field.name: getattr(given, field.name) for field in fields(WarmUp)})
    tokenizer = build_vision_tokenizer()
    model = fresh_model(tokenizer, settings.seed)
    started_s = time.monotonic()

    def show(update: int, loss: float) -> None:
        if update % _SHOW_EVERY_UPDATES == 0 or update == settings.updates:
            took_s = time.monotonic() - started_s
            print(f"update {update}/{settings.updates}  loss {loss:.3f}  {took_s:.0f} s", flush=True)

    warm_up(model, tokenizer, settings, show)
    write_folder(given.out, model, tokenizer, settings)
    print(f"written to {given.out}")


if __name__ == "__main__":
    main()
