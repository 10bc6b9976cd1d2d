"""Paths that no file has, or that lead to what is no file, wherever a command takes one: told at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl

LONG = "a" * 300
PATHS: dict[str, Callable[[str], str]] = {
    "too long": lambda end: f"./{LONG}{end}",
    "too long without a folder": lambda end: f"{LONG}{end}",
    "a NUL byte": lambda end: f"./a\0b{end}",
    "no UTF-8": lambda end: f"./\udcff{end}",
    "a FIFO": lambda end: f"./fifo{end}",
    "a device": lambda end: f"./zero{end}",
    "links in a circle": lambda end: f"./circle{end}",
    "a folder": lambda end: f"./folder{end}",
    "nobody's home": lambda end: f"~nobody-of-that-name/x{end}",
    "below a file": lambda end: f"./file{end}/x{end}",
    "empty": lambda _: "",
    "a blank": lambda _: " ",
}
NEEDED = ("--model", "./gone", "--dataset", "countdown", "--rewards", "format_reward")
TRAIN = ("train", "--dry-run")
PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "recipe": (".yaml", (*TRAIN, "--recipe", "{}")),
    "extended recipe": (".yaml", (*TRAIN, "--recipe", "extending.yaml")),
    "TOML": (".toml", (*TRAIN, "--recipe", "{}")),
    "model": ("", (*TRAIN, *NEEDED, "--model", "{}")),
    "GGUF file": (".gguf", (*TRAIN, *NEEDED, "--model", "{}")),
    "tokenizer": ("", (*TRAIN, *NEEDED, "--set", "model.tokenizer={}")),
    "adapter": ("", (*TRAIN, *NEEDED, "--set", "trainer.lora.adapter={}")),
    "template": (".jinja", (*TRAIN, *NEEDED, "--set", "model.chat_template={}")),
    "system prompt": (".txt", (*TRAIN, *NEEDED, "--system", "{}")),
    "dataset": (".jsonl", (*TRAIN, *NEEDED, "--dataset", "{}")),
    "evaluation": (".csv", (*TRAIN, *NEEDED, "--eval-dataset", "{}")),
    "preprocessor": (".py", (*TRAIN, *NEEDED, "--set", "dataset.preprocess={}:f")),
    "reward": (".py", (*TRAIN, *NEEDED, "--rewards", "{}:f")),
    "plugin": (".py", (*TRAIN, *NEEDED, "--plugin", "{}")),
    "output": ("", (*TRAIN, *NEEDED, "--output", "{}")),
    "preview": (".parquet", ("datasets", "preview", "{}")),
    "JSON": (".json", ("datasets", "preview", "{}")),
    "cases": (".jsonl", ("rewards", "test", "format_reward", "--cases", "{}")),
    "row": (".jsonl", ("rewards", "try", "format_reward", "--completion", "a", "--row", "{}")),
    "completion": (".txt", ("rewards", "try", "format_reward", "--completion", "@{}")),
    "resumed run": ("", ("resume", "{}")),
    "evaluated run": ("", ("eval", "{}", *NEEDED)),
    "reported run": ("", ("report", "{}")),
    "report": (".html", ("report", "folder", "--output", "{}")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the paths lead to, under every ending."""
    made = tmp_path_factory.mktemp("paths")
    for end in {end for end, _ in PLACES.values()} | {""}:
        os.mkfifo(made / f"fifo{end}")
        (made / f"zero{end}").symlink_to("/dev/zero")
        (made / f"circle{end}").symlink_to(f"circle{end}")
        (made / f"folder{end}").mkdir()
        (made / f"file{end}").write_text("")
    return made


@pytest.mark.parametrize("number", range(len(PLACES)))
def test_a_path_that_leads_to_no_file_is_told_at_once(folder: Path, number: int) -> None:
    """Each kind of path in two places or more, and each place with two kinds."""
    kinds = list(PATHS)
    check(folder, list(PLACES)[number], [kinds[number % len(kinds)], kinds[(number * 5 + 7) % len(kinds)]])


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_every_path_that_leads_to_no_file_is_told_at_once(folder: Path, place: str) -> None:
    check(folder, place, list(PATHS))


def check(folder: Path, place: str, kinds: Sequence[str]) -> None:
    end, arguments = PLACES[place]
    for name in kinds:
        text = PATHS[name](end)
        if place == "extended recipe":
            (folder / "extending.yaml").write_text(f"extends: {_quoted(text)}\n")
        done = grpoctl(folder, *[each.replace("{}", text) for each in arguments], code=None)
        assert done.returncode in (2, 3), (name, done.stdout, done.stderr)
        assert done.stderr.startswith(("error: ", "Usage: ", "warning: ")), (name, done.stderr)
        assert "fault in the program" not in done.stderr, (name, done.stderr)
        assert "Traceback" not in done.stderr, (name, done.stderr)


def _quoted(text: str) -> str:
    """As YAML has it."""
    return '"' + "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text) + '"'
