"""The command that makes a tiny model: tokenizer, random weights, warm-up, folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from transformers.utils import logging

from grpo_rewards_math.tiny_model.folder import write_folder
from grpo_rewards_math.tiny_model.lesson import Lesson, WarmUp
from grpo_rewards_math.tiny_model.tokenizer import build_tokenizer
from grpo_rewards_math.tiny_model.warm_up import fresh_model, warm_up

__all__ = ["make"]

_SHOW_EVERY_UPDATES = 50
_HELP = {
    "updates": "optimiser updates of the warm-up",
    "batch": "demonstrations of one update",
    "learning_rate": "at its peak",
    "careful_share": "how many of the demonstrations are careful, 0 to 1",
    "seed": "of weights, problems and demonstrations",
}


def make(lesson: Lesson, arguments: Sequence[str] | None = None) -> None:
    """Build tokenizer and model, warm the model up, and write the folder that the command line names."""
    logging.disable_progress_bar()  # one, of one file being written
    given = _parser(lesson).parse_args(arguments)
    settings = WarmUp(**{field.name: getattr(given, field.name) for field in fields(WarmUp)})
    tokenizer = build_tokenizer(lesson.texts(), vocabulary=lesson.vocabulary)
    model = fresh_model(tokenizer, settings.seed)
    started_s = time.monotonic()

    def show(update: int, loss: float) -> None:
        if update % _SHOW_EVERY_UPDATES == 0 or update == settings.updates:
            took_s = time.monotonic() - started_s
            print(f"update {update}/{settings.updates}  loss {loss:.3f}  {took_s:.0f} s", flush=True)

    warm_up(model, tokenizer, lesson, settings, show)
    write_folder(given.out, model, tokenizer, lesson, settings)
    print(f"written to {given.out}")


def _parser(lesson: Lesson) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=lesson.command)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    for name, default in asdict(lesson.defaults).items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=type(default), default=default, help=f"{_HELP[name]}; default: {default}")
    return parser
