"""The mapping of well-known columns: a row -> a sample. Every column that is not part of the prompt survives.

    messages, conversations                                     the whole conversation
    query, prompt, input, instruction, question, problem, question_content
                                                                the user message (`instruction` + `input` are joined)
    system, system_prompt                                       the system message
    history                                                     earlier turns
    images, image                                               the images of the prompt

A column that was renamed to one of these names wins; else a conversation wins over a text, and two columns of one line
are an error. A final assistant turn leaves the prompt, so the
policy never sees the answer, and becomes the column `response`. Datasets with a preprocessor of their own don't come
here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from grpo_core.data.conversation import Conversation, holds_chat, parse_chat, parse_history, text_message
from grpo_core.data.images import image_refs, place_images
from grpo_core.errors import DataError
from grpo_core.types import Message, Sample
from grpo_core.types.reserved import RESERVED_NAMES

__all__ = ["Mapped", "check_names", "check_renames", "map_row", "rename", "sample_of", "with_system"]

CHAT_COLUMNS = ("messages", "conversations")
TEXT_COLUMNS = ("query", "prompt", "input", "instruction", "question", "problem", "question_content")
SYSTEM_COLUMNS = ("system", "system_prompt")
IMAGE_COLUMNS = ("images", "image")
HISTORY_COLUMN = "history"
RESPONSE_COLUMN = "response"
_JOINED = ("instruction", "input")
_NEVER_ASKED = frozenset(
    {"answer", "answers", "canonical_solution", "chosen", "code", "completion", "expected", "final_answer", "gold"}
    | {"ground_truth", "label", "output", "reference", "rejected", "response", "solution", "solutions", "target"}
    | {"test", "tests", "task_id"}
)
"""Names of columns that hold what is right or how it is checked, so that they are not proposed as the prompt."""

_RESPONSE_KEPT = f"a final assistant turn left the prompt, and the row had a column {RESPONSE_COLUMN}, which is kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A sample, and what a person should know about how it came about."""

    sample: Sample
    """Without an id."""
    notes: tuple[str, ...] = ()
    """The same words for every row it happens to, so that they can be counted."""


def check_renames(columns: Iterable[str], renames: Mapping[str, str]) -> None:
    """Raise `DataError` when a column to rename is not there, or a new name is taken."""
    present = set(columns)
    for old, new in renames.items():
        if old not in present:
            near = get_close_matches(old, sorted(present), n=1)
            meant = f"Did you mean {near[0]}? " if near else ""
            raise DataError(
                f"--columns {old}={new}: the dataset has no column {old}",
                hint=f"{meant}Its columns are {', '.join(sorted(present))}.",
            )
        if new in present - renames.keys() or list(renames.values()).count(new) > 1:
            raise DataError(
                f"--columns {old}={new}: there would be two columns {new}",
                hint=f"Rename the other one as well: --columns {new}={new}_2.",
            )


def rename(columns: Mapping[str, object], renames: Mapping[str, str]) -> dict[str, object]:
    """The columns of a row under their new names; a row may lack some."""
    return {renames.get(name, name): value for name, value in columns.items()}


def check_names(columns: Iterable[str]) -> None:
    """Raise `DataError` when a column has a name that means something else to a reward."""
    for name in sorted(RESERVED_NAMES.intersection(columns)):
        raise DataError(
            f"column {name}: the name is reserved, rewards get the run's own {name} by it",
            hint=f"Rename the column: --columns {name}=row_{name}.",
        )


def map_row(row: Mapping[str, object], *, explicit: Collection[str] = ()) -> Mapped:
    """Make a sample of a row by the names of its columns; `explicit` are the names that the user gave to columns.

    Raises `DataError` that names the column, not the row.
    """
    prompt, used = _prompt(_candidates(row, explicit))
    system, system_column = _system(row, prompt.messages)
    history = parse_history(row.get(HISTORY_COLUMN))
    turns, reply = _without_reply(_in_order(system, history.messages, prompt.messages))
    if not turns or turns[-1].role == "system":
        raise DataError(f"{_named(used)}: nothing is asked: there is no user message")
    image_column = _only(row, IMAGE_COLUMNS, "the images")
    images = history.images + prompt.images
    if image_column:
        images += image_refs(row[image_column], column=image_column)
    columns = _others(row, {*used, system_column, image_column, HISTORY_COLUMN})
    notes = _notes(columns, used[0], reply)
    if reply is not None:
        columns.setdefault(RESPONSE_COLUMN, reply)
    messages = place_images(turns, images, has_column=image_column is not None)
    return Mapped(sample=Sample(messages=messages, columns=columns, images=images), notes=notes)


def sample_of(row: Mapping[str, object]) -> Sample:
    """Make a sample of a row by the names of its columns, as is done where a dataset has no preprocessor of its own.

    For preprocessors that change only a part of it. Raises `DataError` that names the column, not the row.
    """
    return map_row(row).sample


def _others(row: Mapping[str, object], consumed: Collection[str | None]) -> dict[str, object]:
    """The columns that are not part of the prompt; a conversation that is None would only have a reserved name."""
    return {
        name: value
        for name, value in row.items()
        if name not in consumed and not (name == "messages" and value is None)
    }


def _notes(columns: Mapping[str, object], prompt_column: str, reply: str | None) -> tuple[str, ...]:
    notes = [_RESPONSE_KEPT] if reply is not None and RESPONSE_COLUMN in columns else []
    if prompt_column in CHAT_COLUMNS:
        ignored = [name for name in TEXT_COLUMNS if columns.get(name) is not None]
        notes += [f"the prompt is in {prompt_column}; the column {name} is not part of it" for name in ignored]
    return tuple(notes)


def _candidates(row: Mapping[str, object], explicit: Collection[str]) -> dict[str, object]:
    """The prompt columns that have a value; only those the user named, where there are any."""
    found = {name: row[name] for name in (*CHAT_COLUMNS, *TEXT_COLUMNS) if row.get(name) is not None}
    if not found:
        raise _no_prompt(row)
    named = {name for name in found if name in explicit}
    if named & set(_JOINED):
        named |= set(_JOINED)
    return {name: value for name, value in found.items() if name in named} if named else found


def _prompt(row: Mapping[str, object]) -> tuple[Conversation, tuple[str, ...]]:
    """The conversation that the prompt columns hold, and which columns these are."""
    if chat := _only(row, CHAT_COLUMNS, "the conversation"):
        return parse_chat(row[chat], column=chat), (chat,)
    if row.keys() >= set(_JOINED):
        _only(row, [name for name in TEXT_COLUMNS if name != "input"], "the prompt")
        return _instruction_with_input(row), _JOINED
    text = _only(row, TEXT_COLUMNS, "the prompt")
    assert text is not None
    if holds_chat(row[text]):
        return parse_chat(row[text], column=text), (text,)
    return Conversation(messages=(text_message("user", row[text], column=text),)), (text,)


def _instruction_with_input(row: Mapping[str, object]) -> Conversation:
    instruction = text_message("user", row["instruction"], column="instruction")
    if row["input"] == "":
        return Conversation(messages=(instruction,))
    extra = text_message("user", row["input"], column="input")
    return Conversation(messages=(Message(role="user", content=f"{instruction.content}\n\n{extra.content}"),))


def _no_prompt(row: Mapping[str, object]) -> DataError:
    empty = [name for name in (*CHAT_COLUMNS, *TEXT_COLUMNS) if name in row]
    if empty:
        return DataError(f"{_named(empty)}: the prompt is missing (None)")
    never = {*_NEVER_ASKED, *IMAGE_COLUMNS}
    lengths = {name: len(value) for name, value in row.items() if isinstance(value, str) and name not in never}
    likely = max(lengths or row, key=lambda name: lengths.get(name, 0), default="")  # questions are longer than labels
    return DataError(
        f"no column could be the prompt; the columns are {', '.join(row) or 'none'}",
        hint=f"Say which one it is: --columns {likely}=query." if row else "Give each row a column `query`.",
    )


def _system(row: Mapping[str, object], prompt: Sequence[Message]) -> tuple[tuple[Message, ...], str | None]:
    column = _only({name: row.get(name) or None for name in SYSTEM_COLUMNS}, SYSTEM_COLUMNS, "the system prompt")
    if column is None:
        return (), next((name for name in SYSTEM_COLUMNS if name in row), None)
    message = text_message("system", row[column], column=column)
    if any(turn.role == "system" and turn != message for turn in prompt):
        raise DataError(f"column {column}: the conversation has a system message too, and another one")
    return (message,), column


def _in_order(system: Sequence[Message], history: Sequence[Message], prompt: Sequence[Message]) -> tuple[Message, ...]:
    """System messages first, then the earlier turns, then the prompt's own."""
    own = [turn for turn in prompt if turn.role != "system"] if system else list(prompt)
    leading = 0
    while leading < len(own) and own[leading].role == "system":
        leading += 1
    return (*system, *own[:leading], *history, *own[leading:])


def _without_reply(turns: tuple[Message, ...]) -> tuple[tuple[Message, ...], str | None]:
    end = len(turns)
    while end and turns[end - 1].role == "assistant":
        end -= 1
    reply = "\n\n".join(turn.content for turn in turns[end:])
    return turns[:end], reply if end < len(turns) else None


def _only(row: Mapping[str, object], names: Sequence[str], what: str) -> str | None:
    """The one of these columns that has a value; raises when several have."""
    found = [name for name in names if row.get(name) is not None]
    if len(found) > 1:
        keep, other = found[0], found[1]
        raise DataError(
            f"{_named(found)}: each could be {what}",
            hint=f"Rename all but one: --columns {other}={other}_text keeps {keep}.",
        )
    return found[0] if found else None


def _named(columns: Sequence[str]) -> str:
    return f"column {columns[0]}" if len(columns) == 1 else f"columns {' and '.join(columns)}"


def with_system(sample: Sample, system: str) -> Sample:
    """The sample with a system message in front, unless it has one of its own; empty: none is added."""
    if not system or any(message.role == "system" for message in sample.messages):
        return sample
    return replace(sample, messages=(Message(role="system", content=system), *sample.messages))
