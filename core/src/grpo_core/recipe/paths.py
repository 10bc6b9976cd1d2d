"""Relative paths in settings: where they start, and which texts are the paths of files with the text in them.

A path in a recipe file starts at that file's folder, one on the command line at the working directory. `run.directory`
alone always starts at the working directory: it is where results go, not where something comes from.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grpo_core.errors import DataError, UsageError
from grpo_core.plugins.references import Reference, check_details, check_form, parse_reference
from grpo_core.recipe.package_files import PACKAGE_PREFIX, package_file
from grpo_core.recipe.syntax import KeyPath
from grpo_core.regular_files import read_text, shown, unusual_kind

__all__ = ["anchor", "read_text_setting"]

_REFERENCES: tuple[KeyPath, ...] = (
    ("dataset", "use"),
    ("dataset", "evaluation"),
    ("dataset", "preprocess"),
    ("rollout", "use"),
    ("trainer", "use"),
)
_MODELS: tuple[KeyPath, ...] = (("model", "path"), ("model", "tokenizer"), ("trainer", "lora", "adapter"))
_TEXTS: tuple[KeyPath, ...] = (("dataset", "system"), ("model", "chat_template"))
_TEXT_SUFFIXES = (".txt", ".md", ".jinja", ".jinja2", ".j2", ".prompt")


def anchor(values: Mapping[str, Any], base: Path) -> tuple[dict[str, Any], list[tuple[KeyPath, str]]]:
    """Make every relative path absolute, starting at the folder `base`; the second result is what could not be read."""
    anchored = copy.deepcopy(dict(values))
    faults: list[tuple[KeyPath, str]] = []
    for path, section, key in _path_settings(anchored):
        try:
            section[key] = _anchored(path, key, section[key], base)
        except (UsageError, DataError) as error:
            faults.append((path, f"{error.message}. {error.hint}" if error.hint else error.message))
    return anchored, faults


def read_text_setting(text: str, *, base: Path | None = None) -> str:
    """The text that a setting such as `--system` means: what it says, or what the file it names contains.

    It names a file when it is one line that begins with `./`, `../` or `~/`, or ends in .txt, .md, .jinja or .prompt
    without a blank in it, or is the path of a file that exists. Raises DataError when that file cannot be read.
    """
    path = _text_file(text, base or Path())
    return text if path is None else _read_text_file(path)


def _read_text_file(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise DataError(
            f"{shown(str(path))} cannot be read: {reason}", hint="Name a text file, or write the text itself."
        ) from None


def _path_settings(values: dict[str, Any]) -> Iterator[tuple[KeyPath, dict[str, Any], str]]:
    """Every setting with a path in it, as (path, the mapping it is in, its key)."""
    for path in (*_REFERENCES, *_MODELS, *_TEXTS):
        *outer, key = path
        inner: Any = values
        for part in outer:
            inner = inner.get(part) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get(key), str):
            yield path, inner, str(key)
    dataset = values.get("dataset")
    mix = dataset.get("mix") if isinstance(dataset, dict) else None
    for root, entries, keys in (
        (("rewards",), values.get("rewards"), ("use",)),
        (("dataset", "mix"), mix, ("use", "preprocess", "system")),
    ):
        for place, entry in enumerate(entries if isinstance(entries, list) else [entries]):
            for key in keys:
                if isinstance(entry, dict) and isinstance(entry.get(key), str):
                    yield (*root, place, key), entry, key


def _anchored(path: KeyPath, key: str, text: str, base: Path) -> str:
    if path in _TEXTS or key == "system":
        file = _text_file(text, base)
        if file is None:
            return text
        _read_text_file(file)  # so that a missing file is found here, where the value was written
        return str(file)
    if path in _MODELS and text.startswith(PACKAGE_PREFIX):
        return str(package_file(text))
    reference = parse_reference(text, base=base)
    return _anchored_model(reference, base) if path in _MODELS else str(reference)


def _anchored_model(reference: Reference, base: Path) -> str:
    """A folder, a file, or the bare hub id that transformers takes."""
    check_details(check_form(reference, ("name", "hub", "path"), what="a model"), ())
    if reference.hub == "ms":
        raise UsageError(
            f"'{reference.text}': ModelScope models are not loaded by id", hint="Download it and give its folder."
        )
    if reference.form != "name":
        return reference.value
    local = Path(os.path.abspath(base / reference.value))
    if os.path.exists(local):
        return str(local)
    if reference.may_be_hub_id and os.path.isdir(local.parent):
        raise UsageError(
            f"'{reference.text}': the folder {local.parent} has no '{local.name}'",
            hint=f"If the model of the hub is meant, write hf:{reference.value}.",
        )
    return reference.value


def _text_file(text: str, base: Path) -> Path | None:
    line = text.strip()
    if not line or "\n" in line:
        return None
    candidate = os.path.abspath(os.path.join(base, os.path.expanduser(line)))
    is_path = line.startswith(("./", "../", "~/")) or (line.endswith(_TEXT_SUFFIXES) and len(line.split()) == 1)
    is_file = ("/" in line or line.endswith(_TEXT_SUFFIXES)) and _is_read_like_a_file(candidate)
    return Path(candidate) if is_path or is_file else None


def _is_read_like_a_file(path: str) -> bool:
    """Whether it is a file, or a FIFO or device that would be taken for one and is refused."""
    return os.path.isfile(path) or unusual_kind(path) not in (None, "a folder")
