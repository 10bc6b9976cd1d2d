"""What a plugin's code gave for a row: a `Sample` of the parts that its fields say, or an error that names the part.

Place in the flow: row → preprocessor → **checked** → system prompt → Sample.
"""

from __future__ import annotations

from collections.abc import Mapping

from grpo_core.errors import DataError
from grpo_core.types import ImageRef, Message, Sample

__all__ = ["check_given", "check_made"]

_MESSAGE = "Message(role='user', content='…')"
_ADVICE = {
    "messages": f"Write messages=({_MESSAGE},), a tuple; Message is in grpo_core.api.",
    "columns": "Write columns={'solution': …}: what rewards get, by name.",
    "images": "Write images=(ImageRef(source='a.png'),), a tuple; ImageRef is in grpo_core.api.",
}


def check_given(given: object, name: str) -> Sample | None:
    """The sample that preprocessor `name` gave, or None for a row it drops; raises `DataError` for anything else."""
    if given is None:
        return None
    if not isinstance(given, Sample):
        raise DataError(
            f"the preprocessor '{name}' gave {_shown(given)}; it must give a Sample or None",
            hint=f"Return Sample(messages=({_MESSAGE},), columns={{…}}), from grpo_core.api.",
        )
    for field, fault in (
        ("messages", _fault_of_items(given.messages, "messages", Message) or _fault_of_texts(given.messages)),
        ("columns", _fault_of_columns(given.columns)),
        ("images", _fault_of_items(given.images, "images", ImageRef)),
    ):
        if fault is not None:
            raise DataError(f"the preprocessor '{name}' gave a Sample with {fault}", hint=_ADVICE[field])
    return given


def check_made(row: object, source: str, number: int) -> Mapping[str, object]:
    """Row `number`, from 1, that row source `source` made; raises `DataError` when it is no mapping of columns."""
    fault = _fault_of_columns(row)
    if fault is not None:
        raise DataError(f"row {number} of '{source}' has {fault}", hint="Yield a dict for each row: {'query': …}.")
    assert isinstance(row, Mapping)
    return row


def _fault_of_items(items: object, field: str, kind: type) -> str | None:
    if not isinstance(items, tuple):
        return f"{_shown(items)} as {field}, not a tuple of {kind.__name__}"
    wrong = [item for item in items if not isinstance(item, kind)]
    return f"{_shown(wrong[0])} among its {field}, not only {kind.__name__}" if wrong else None


def _fault_of_texts(messages: tuple[Message, ...]) -> str | None:
    for message in messages:
        for field, value in (("role", message.role), ("content", message.content)):
            if not isinstance(value, str):
                return f"{_shown(value)} as the {field} of a message, not a text"
    return None


def _fault_of_columns(columns: object) -> str | None:
    if not isinstance(columns, Mapping):
        return f"{_shown(columns)} as columns, not a mapping"
    wrong = [key for key in columns if not isinstance(key, str)]
    return f"{_shown(wrong[0])} as the name of a column, not a text" if wrong else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
