"""The one grammar of references: how a recipe or a flag names a dataset, a reward, a model or any other component.

    name            countdown            grpo-rewards-math/countdown
    object          ./mine.py:brevity    pkg.mod:attr
    hub             hf:owner/name        ms:owner/name
    path            ./rows.jsonl         /data/rows        ~/rows        rows.parquet    runs/demo/final

Any of them may go on with details, `?subset=main&split=train`, and a number of rows, `#50000`. In paths and details
the signs `#`, `?`, `&` and `%` are written `%23`, `%3F`, `%26` and `%25`; and a comma `%2C` where commas separate.

A bare `owner/name` reads as a name: `Catalog.find` tells whether it is a registered `dist/name`, and where it is not,
it is a Hugging Face id. With more slashes, or with other signs, it can be neither, and is a path. Nothing is looked up
here, on disk or anywhere else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, cast

from grpo_core.errors import UsageError
from grpo_core.regular_files import path_fault, shown

__all__ = ["Form", "Reference", "check_details", "check_form", "parse_reference"]

Form = Literal["name", "object", "hub", "path"]

KNOWN_SUFFIXES = (
    *(".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".txt", ".gz", ".zst", ".zip"),
    *(".gguf", ".safetensors", ".py", ".yaml", ".yml", ".toml", ".jinja"),
)
_HUBS = ("hf", "ms")
_FOREIGN = ("trl", "swift", "verl")
"""Prefixes kept for rewards written for other trainers."""

_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_NAME = re.compile(rf"{_WORD}(/{_WORD})?")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9+-]*):(.*)")
_ROWS = re.compile(r"[1-9][0-9]{0,11}")
_ESCAPED = re.compile(r"%(23|25|26|2C|3F)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference taken apart. `str` of it is its full spelling, paths absolute, and reads as the same reference."""

    form: Form
    """What it is."""
    value: str
    """`name`, `dist/name`, `pkg.mod:attr`, `/absolute/file.py:attr`, `owner/name`, or an absolute path."""
    hub: Literal["hf", "ms"] | None = None
    """Which hub, for the form `hub`."""
    details: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The query, key -> value. The value of `path` is a path and absolute."""
    rows: int | None = None
    """The fragment: how many rows to take; None: all."""
    text: str = field(default="", compare=False)
    """As it was written, for messages."""

    @property
    def may_be_hub_id(self) -> bool:
        """Whether it is a bare `owner/name`: a Hugging Face id unless a plugin registers it."""
        return self.form == "name" and "/" in self.value

    @property
    def path(self) -> Path:
        """The value of the form `path`."""
        return Path(self.value)

    @property
    def short_name(self) -> str:
        """Its last part, to show: `brevity` of `./mine.py:brevity`, `countdown` of `dist/countdown`, `rows` of
        `./rows.jsonl`."""
        if self.form == "object":
            return re.split(r"[:.]", self.value)[-1]
        last = self.value.rstrip("/").rpartition("/")[2] or "/"
        return Path(last).stem if self.form == "path" else last

    def __str__(self) -> str:
        prefix = f"{self.hub}:" if self.hub else ""
        query = "&".join(f"{key}={_escape(value)}" for key, value in self.details.items())
        rows = "" if self.rows is None else f"#{self.rows}"
        written = f"{prefix}{_escape(self.value)}{'?' if query else ''}{query}{rows}"
        # Blanks around a reference are not part of it; those at the end of a path, which it ends in then, are.
        return written if written == written.rstrip() else f"{written}/."


def parse_reference(text: str, *, base: Path | None = None) -> Reference:
    """Take a reference apart; relative paths start at the folder `base`, or at the working directory.

    Raises `UsageError` for text that is no reference.
    """
    body, _, fragment = text.strip().partition("#")
    rows = _parse_rows(fragment, text) if "#" in text else None
    body, _, query = body.partition("?")
    details = _parse_details(query, text, base) if "?" in text.partition("#")[0] else {}
    if not body:
        raise UsageError(
            f"'{text}' names nothing" if text.strip() else "a reference is empty",
            hint="Write a registered name, ./file.jsonl, ./file.py:function or hf:owner/name.",
        )
    form, value, hub = _parse_body(_unescape(body), text, base)
    return Reference(form=form, value=value, hub=hub, details=details, rows=rows, text=text.strip())


def check_form(reference: Reference, allowed: Collection[Form], *, what: str) -> Reference:
    """Give back a reference of an allowed form, for `what` ("a reward"); raises `UsageError` for another form."""
    if reference.form in allowed:
        return reference
    spelled = {"name": "a registered name", "object": "file.py:function", "hub": "hf:owner/name", "path": "a path"}
    hint = f"Write {' or '.join(text for form, text in spelled.items() if form in allowed)}."
    if reference.value.endswith(".py") and "object" in allowed:
        hint = f"Name the function in it: {reference.text}:my_function."
    raise UsageError(f"'{reference.text}' is {spelled[reference.form]}, which cannot be {what}", hint=hint)


def check_details(reference: Reference, allowed: Collection[str], *, rows: bool = False) -> Reference:
    """Give back a reference whose query has only `allowed` keys, and a `#rows` only where `rows`; else `UsageError`."""
    for key in reference.details:
        if key not in allowed:
            near = get_close_matches(key, list(allowed), n=1)
            known = f"Known: {', '.join(sorted(allowed))}." if allowed else "Nothing can follow '?' here."
            hint = f"Did you mean '{near[0]}'? {known}" if near else known
            raise UsageError(f"unknown detail '{key}' in '{reference.text}'", hint=hint)
    if reference.rows is not None and not rows:
        raise UsageError(
            f"'{reference.text}' asks for #{reference.rows} rows, but is not a dataset", hint="Remove the '#'."
        )
    return reference


def _parse_rows(fragment: str, text: str) -> int:
    if _ROWS.fullmatch(fragment):
        return int(fragment)
    hint = "After '#' comes a number of rows, as in rows.jsonl#500; a '#' in a path is written %23."
    if "?" in fragment:
        hint = "Details come before the number of rows: name?split=train#500."
    raise UsageError(f"'{text}': '#{fragment}' is not a number of rows of at least 1 and at most 12 digits", hint=hint)


def _parse_details(query: str, text: str, base: Path | None) -> dict[str, str]:
    details: dict[str, str] = {}
    for part in query.split("&"):
        key, _, value = part.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", key) or not value:
            raise UsageError(f"'{text}': '{part}' is not key=value", hint="Details read ?subset=main&split=train.")
        if key in details:
            raise UsageError(f"'{text}' gives '{key}' twice", hint="Keep one of them.")
        value = _unescape(value)
        details[key] = _absolute(value, base, text) if key == "path" else value
    return details


def _parse_body(body: str, text: str, base: Path | None) -> tuple[Form, str, Literal["hf", "ms"] | None]:
    is_path = body.startswith((".", "/", "~"))
    head, colon, attribute = body.rpartition(":")
    if colon and head.endswith(".py"):
        return "object", f"{_absolute(head, base, text)}:{_check_attribute(attribute, text)}", None
    if is_path:
        return "path", _absolute(body, base, text), None
    if colon:
        return _parse_colon(body, text)
    if body.lower().endswith(KNOWN_SUFFIXES):
        return "path", _absolute(body, base, text), None
    if _NAME.fullmatch(body):
        return "name", body, None
    if "/" in body:
        return "path", _absolute(body, base, text), None
    raise UsageError(f"'{text}' is not a reference", hint="Names have letters, digits, '_', '-' and '.'.")


def _parse_colon(body: str, text: str) -> tuple[Form, str, Literal["hf", "ms"] | None]:
    prefixed = _PREFIX.fullmatch(body)
    prefix, rest = prefixed.groups() if prefixed else ("", "")
    if prefix in _HUBS:
        if not _NAME.fullmatch(rest):
            raise UsageError(f"'{text}': '{rest}' is not an id of a hub", hint=f"Write {prefix}:owner/name.")
        return "hub", rest, cast(Literal["hf", "ms"], prefix)
    if prefix in _FOREIGN:
        raise UsageError(
            f"'{text}': rewards of another trainer ('{prefix}:') cannot be used yet",
            hint="Wrap it in a function of your own and name that: ./mine.py:my_reward.",
        )
    module, _, attribute = body.partition(":")
    if _ATTRIBUTE.fullmatch(module) and (not attribute or _ATTRIBUTE.fullmatch(attribute) or "." in module):
        return "object", f"{module}:{_check_attribute(attribute, text)}", None
    raise UsageError(
        f"'{text}': '{prefix or module}:' is not a known prefix",
        hint="Known: hf: and ms: for hubs; pkg.mod:attr and file.py:attr for Python objects.",
    )


def _check_attribute(attribute: str, text: str) -> str:
    if _ATTRIBUTE.fullmatch(attribute):
        return attribute
    if not attribute:
        raise UsageError(f"'{text}' names no attribute after ':'", hint=f"Write {text.strip()}my_function.")
    raise UsageError(f"'{text}': '{attribute}' is not a Python name", hint="After ':' comes a function of the module.")


def _absolute(path: str, base: Path | None, text: str) -> str:
    try:
        expanded = Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"'{text}': {path.split('/')[0]} is no user's home", hint="Write the path in full.") from error
    absolute = os.path.abspath(os.path.join(base or Path(), expanded))
    if fault := path_fault(absolute):
        raise UsageError(f"{shown(text)} can be no file: {fault}", hint="Write the path as the file system has it.")
    return absolute


def _escape(text: str) -> str:
    return re.sub(r"[#?&%]", lambda sign: f"%{ord(sign[0]):02X}", text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text)
