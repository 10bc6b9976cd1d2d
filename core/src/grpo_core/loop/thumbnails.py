"""The images of a run's prompts, small, each once: RUN/images/<digest>.jpg, which completions and probes name.

Their number is bounded, and spread evenly over the steps whatever happens between: which images of a step are kept
depends on the step alone, so that a resumed run has the same. An image that cannot be read when it is recorded ends
no run: its place in the records is empty.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from grpo_core.errors import DataError
from grpo_core.model.pixels import digest, thumbnail
from grpo_core.types import ImageRef

__all__ = ["IMAGES_FOLDER", "MOST_THUMBNAILS", "Thumbnails", "allowance"]

IMAGES_FOLDER = "images"
MOST_THUMBNAILS = 1000
"""Of a run's training prompts, each about 20 kB at most; those of the few probe prompts come in addition."""

Warn = Callable[[str, str, OSError | DataError], None]
"""Says a problem, its consequence and the error, once for its kind."""


def allowance(step: int, total_steps: int) -> int:
    """How many images of a step are kept: `MOST_THUMBNAILS` spread evenly over all steps."""
    return MOST_THUMBNAILS * step // total_steps - MOST_THUMBNAILS * (step - 1) // total_steps


class Thumbnails:
    """Names the images of a file of records, and keeps the first of them as thumbnails."""

    def __init__(self, run_dir: Path, warn: Warn) -> None:
        self._folder, self._warn = run_dir / IMAGES_FOLDER, warn

    def keep(self, images: Iterable[ImageRef], *, most: int | None) -> dict[ImageRef, str | None]:
        """Image -> its digest, or None where it cannot be read. The first `most` different ones are written unless they
        are there; None: all."""
        names: dict[ImageRef, str | None] = {image: self._digest(image) for image in dict.fromkeys(images)}
        first = {name: image for image, name in reversed(names.items()) if name is not None}
        in_order = list(reversed(first.items()))
        for name, image in in_order[:most]:
            self._write(name, image)
        return names

    def _digest(self, image: ImageRef) -> str | None:
        try:
            return digest(image)
        except DataError as error:
            self._warn(error.message, "it and others like it have no name in the records", error)
            return None

    def _write(self, name: str, image: ImageRef) -> None:
        path = self._folder / f"{name}.jpg"
        aside = path.with_suffix(".partial")
        try:
            if path.is_file():
                return
            encoded = thumbnail(image)
            self._folder.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(encoded)
            aside.replace(path)
        except DataError as error:
            self._warn(error.message, "it and others like it have no thumbnail", error)
        except OSError as error:
            with contextlib.suppress(OSError):
                aside.unlink()
            self._warn(f"{path} cannot be written", "files like it are lost until there is room", error)
