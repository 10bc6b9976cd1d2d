"""Settings that are either a text or the path of a file with one: the system prompt, a chat template."""

from __future__ import annotations

from pathlib import Path

from grpo_core.errors import UsageError

__all__ = ["looks_like_path", "text_of"]

_PATH_STARTS = ("./", "../", "/", "~/")
_TEXT_SUFFIXES = (".txt", ".md", ".jinja", ".jinja2", ".j2")
_LONGEST_PATH = 1024


def text_of(value: str, *, what: str) -> str:
    """The text itself, or the content of the file it names. Raises `UsageError` when it looks like a path and no file
    is there, so that a mistyped path never becomes the prompt."""
    path = _path(value)
    if path is None or not path.is_file():
        if looks_like_path(value):
            raise UsageError(f"{what}: there is no file {value}", hint="Give the text itself, or the path of a file.")
        return value
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{what}: {value} cannot be read: {error}", hint="It must be a text file in UTF-8.") from error


def looks_like_path(value: str) -> bool:
    """Whether a text is more likely meant as a path: one line that starts or ends as the path of a text."""
    value = value.strip()
    if _path(value) is None or " " in value.rpartition("/")[0]:
        return False
    return value.lower().endswith(_TEXT_SUFFIXES) or (value.startswith(_PATH_STARTS) and " " not in value)


def _path(value: str) -> Path | None:
    value = value.strip()
    if not value or "\n" in value or "\0" in value or len(value) > _LONGEST_PATH:
        return None
    try:
        path = Path(value).expanduser()
        path.exists()  # a name too long for the file system raises here
    except (OSError, RuntimeError):
        return None
    return path
