"""What the datasets of a mix are called: in ids, in metrics, and where a single one is addressed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from grpo_core.errors import UsageError
from grpo_core.plugins.references import parse_reference

__all__ = ["mix_names"]

_NO_WORD = re.compile(r"[^\w-]+")


def mix_names(entries: Sequence[object]) -> list[str | None]:
    """The name of each entry: its `name`, else the end of its `use`, with a number where that is taken.

    None: there is nothing to name it by. Two entries have the same name only where both were given it.

    Example: `hf:openai/gsm8k`, `a/rows.jsonl` and `b/rows.jsonl` are gsm8k, rows and rows_2.
    """
    given = [_given(entry) for entry in entries]
    taken = {name for name in given if name is not None}
    names: list[str | None] = []
    for entry, name in zip(entries, given, strict=True):
        names.append(name if name is not None else _free(_derived(entry), taken))
        taken.update(filter(None, names[-1:]))
    return names


def _given(entry: object) -> str | None:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return name if isinstance(name, str) else None


def _derived(entry: object) -> str | None:
    use = entry.get("use") if isinstance(entry, Mapping) else None
    try:
        return _NO_WORD.sub("_", parse_reference(use).short_name) if isinstance(use, str) else None
    except UsageError:
        return None


def _free(name: str | None, taken: set[str]) -> str | None:
    if name is None or name not in taken:
        return name
    return next(other for number in range(2, len(taken) + 3) if (other := f"{name}_{number}") not in taken)
