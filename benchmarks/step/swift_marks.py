"""For ms-swift, by --external_plugins: the reward of the comparison, and a line in $MARKS at the end of each step."""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from swift.rewards import ORM, orms
from transformers import Trainer, TrainerCallback
from work import score


class LengthMod(ORM):  # type: ignore[misc]
    """The reward."""

    def __call__(self, completions: list[str], **more: Any) -> list[float]:
        return [score(text) for text in completions]


class Marks(TrainerCallback):  # type: ignore[misc]
    """Notes when a step ends."""

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Add a line."""
        with open(os.environ["MARKS"], "a", encoding="utf-8") as out:
            out.write(f"{time.time()}\n")


orms["length_mod"] = LengthMod
_begin = Trainer.__init__


@functools.wraps(_begin)
def _with_marks(self: Any, *arguments: Any, **more: Any) -> None:
    _begin(self, *arguments, **more)
    self.add_callback(Marks())


Trainer.__init__ = _with_marks
