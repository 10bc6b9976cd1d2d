"""Completions and probe answers as a run recorded them: one line each, read one file at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from grpo_core.report.images import is_digest
from grpo_core.report.lines import Row, read_lines
from grpo_core.report.run import StepFile

__all__ = ["Answer", "Samples", "clipped", "groups_of", "prompt_size", "read_answers"]

_HEAD_CHARACTERS = 4000
_TAIL_CHARACTERS = 2000
_MOST_IMAGES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One completion, with what it was worth."""

    step: int
    sample_id: str
    member: int
    """Its place in its group."""
    prompt: str
    text: str
    tokens: int
    truncated: bool
    total: float | None
    scores: dict[str, float | None]
    """None: the reward does not apply, or failed."""
    failures: dict[str, str]
    """Reward -> why it failed."""
    advantage: float | None
    drawn: str
    """`greedy` or `sampled` for a probe."""
    columns: dict[str, str]
    """Of its row, as text."""
    records: dict[str, str]
    """What rewards recorded beside their scores, as text."""
    images: tuple[str, ...] = ()
    """The digests of its prompt's images; "" for one that could not be read."""

    def size(self) -> int:
        """About how many bytes it takes in a page, its prompt aside."""
        return _size(self.text) + 200


def prompt_size(answer: Answer) -> int:
    """About how many bytes its prompt and columns take in a page."""
    return _size(answer.prompt) + sum(map(len, answer.columns.values()))


@dataclass(slots=True)
class Samples:
    """Prompts of a page, each once."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    _places: dict[tuple[str, str, tuple[str, ...]], int] = field(default_factory=dict)

    def place(self, answer: Answer) -> int:
        """Where the answer's prompt stands in `rows`."""
        key = (answer.sample_id, answer.prompt, answer.images)
        if key not in self._places:
            self._places[key] = len(self.rows)
            row = {"id": answer.sample_id, "prompt": clipped(answer.prompt), "columns": answer.columns}
            self.rows.append(row | ({"images": list(answer.images)} if answer.images else {}))
        return self._places[key]


def read_answers(file: StepFile, notes: list[str]) -> Iterator[Answer]:
    """Yield the answers of a file; lines that are none are left out and named in `notes`."""
    broken = 0
    for row in read_lines(file.path, notes):
        try:
            yield _answer(row, file.step)
        except (KeyError, TypeError, ValueError, AttributeError):
            broken += 1
    if broken:
        place = f"{file.path.parent.name}/{file.path.name}"
        notes.append(f"{place}: {broken} lines lack what a completion has, and were left out")


def groups_of(answers: Sequence[Answer]) -> list[list[Answer]]:
    """Answers to one prompt, together: each begins with member 0."""
    groups: list[list[Answer]] = []
    for answer in answers:
        if answer.member == 0 or not groups:
            groups.append([])
        groups[-1].append(answer)
    return groups


def clipped(text: str) -> str:
    """A text, or the beginning and the end of a very long one, with how much is left out between."""
    left_out = len(text) - _HEAD_CHARACTERS - _TAIL_CHARACTERS
    if left_out <= 0:
        return text
    mark = f"\n[… {left_out:,} characters are left out here …]\n"
    return f"{text[:_HEAD_CHARACTERS]}{mark}{text[-_TAIL_CHARACTERS:]}"


def _answer(row: Row, step: int) -> Answer:
    record: Any = row
    scores = {str(name): _number(score) for name, score in record["scores"].items()}
    return Answer(
        step=step,
        sample_id=str(record["sample_id"]),
        member=int(record["member"]),
        prompt=str(record["prompt"]),
        text=str(record["completion"]),
        tokens=int(record["tokens"]),
        truncated=record["finish_reason"] == "length",
        total=_number(record["total"]),
        scores=scores,
        failures={str(name): str(reason) for name, reason in record.get("failures", {}).items()},
        advantage=_number(record.get("advantage")),
        drawn=str(record.get("drawn", "")),
        columns=_texts(record.get("columns", {})),
        records=_texts(record.get("records", {})),
        images=tuple(name if is_digest(name) else "" for name in record.get("images", ())[:_MOST_IMAGES]),
    )


def _number(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _texts(values: Any) -> dict[str, str]:
    known = {str(name): value for name, value in values.items() if value is not None}
    return {
        name: clipped(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in known.items()
    }


def _size(text: str) -> int:
    return min(len(text.encode("utf-8", "replace")), 2 * (_HEAD_CHARACTERS + _TAIL_CHARACTERS))
