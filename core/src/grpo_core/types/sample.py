"""What a dataset row becomes: the conversation a model sees and the columns its rewards see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["PLACEHOLDER", "ImageRef", "Message", "Sample", "image_count"]

PLACEHOLDER = "<image>"
"""What stands for an image in the text of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation.

    Example: `Message(role="user", content="What is 6*7?")`
    """

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str
    """The text; each `<image>` in it stands for the next image of the sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRef:
    """An image of a sample, by where it is; nothing is decoded until a backend needs the pixels.

    Example: `ImageRef(source="images/clevr_000012.png")`
    """

    source: str | bytes
    """A path, or the encoded file itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A prompt and everything the rewards may need to judge its completions.

    Example: `Sample(messages=(Message(role="user", content="6*7?"),), columns={"solution": "42", "task": "math"})`
    """

    messages: tuple[Message, ...]
    """The prompt: never empty, and never ends with an assistant turn."""
    columns: Mapping[str, object] = field(default_factory=dict)
    """Every column of the row that is not part of the prompt; rewards bind to these by name. Read only."""
    images: tuple[ImageRef, ...] = ()
    """The images of the prompt, in the order of their `<image>` placeholders."""
    id: str = ""
    """Unique in its dataset and the same in every run; core assigns it (`train-000012`)."""

    @property
    def task(self) -> str | None:
        """The `task` column as text, or None: which rewards are meant for this sample."""
        task = self.columns.get("task")
        return None if task is None else str(task)


def image_count(count: int) -> str:
    """How many images, for a message: "1 image", "2 images"."""
    return f"{count:,} image" if count == 1 else f"{count:,} images"
