"""`python -m grpo_rewards_math.tiny_model OUT`: make the tiny model, in a few minutes on two CPU cores."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from transformers.utils import logging

from grpo_rewards_math.tiny_model.folder import write_folder
from grpo_rewards_math.tiny_model.tokenizer import build_tokenizer
from grpo_rewards_math.tiny_model.warm_up import WarmUp, fresh_model, warm_up

_SHOW_EVERY_UPDATES = 50
_HELP = {
    "updates": "optimiser updates of the warm-up",
    "batch": "demonstrations of one update",
    "learning_rate": "at its peak",
    "careful_share": "how many of the demonstrations aim at the target, 0 to 1",
    "seed": "of weights, problems and demonstrations",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Build tokenizer and model, warm the model up, and write the folder."""
    given = _parser().parse_args(arguments)
    settings = WarmUp(**{field.name: getattr(given, field.name) for field in fields(WarmUp)})
    tokenizer = build_tokenizer()
    model = fresh_model(tokenizer, settings.seed)
    started_s = time.monotonic()

    def show(update: int, loss: float) -> None:
        if update % _SHOW_EVERY_UPDATES == 0 or update == settings.updates:
            print(
                f"update {update}/{settings.updates}  loss {loss:.3f}  {time.monotonic() - started_s:.0f} s", flush=True
            )

    warm_up(model, tokenizer, settings, show)
    write_folder(given.out, model, tokenizer, settings)
    print(f"written to {given.out}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m grpo_rewards_math.tiny_model", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    for name, default in asdict(WarmUp()).items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=type(default), default=default, help=f"{_HELP[name]}; default: {default}")
    return parser


if __name__ == "__main__":
    logging.disable_progress_bar()  # one, of one file being written
    main()
