"""Broken recipe files: every key that is accepted is in the plan with its value, or an error names file and line; and
never a traceback, whatever the file holds.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from grpo_core.cli.planning import gather, make_plan
from grpo_core.errors import GrpoError
from grpo_core.recipe.layers import reward_name
from grpo_core.recipe.mix import mix_names
from tests.fuzz.mutations import mutated

YAML = b"""\
# a recipe with a bit of everything
summary: a "small" run
model:
  path: ./model
  revision: v1.0
dataset:
  mix:
    - {use: "rows.jsonl#50", weight: 0.7, columns: {gold: solution}}
    - use: countdown
      weight: 0.3
      options: {max_numbers: 3}
  system: |
    Think first.
    Then answer.
  max_prompt_tokens: 512
rewards:
  - format_reward
  - {use: countdown_reward, weight: 2.5e-1, name: found}
rollout: {temperature: 0.9, stop: ["\\n\\n", '</answer>']}
trainer:
  learning_rate: 1e-6
  gradient_checkpointing: true
objective: {loss: dapo, clip_high: 0.28, dual_clip: null}
run:
  steps: 20
  prompts_per_step: 4
  seed: 7
"""
TOML = b"""\
summary = "a small run"
model = "./model"

[dataset]
use = "rows.jsonl#50"
columns = {gold = "solution"}

[[rewards]]
use = "format_reward"

[[rewards]]
use = "countdown_reward"
weight = 2.5e-1

[trainer]
learning_rate = 1e-6
gradient_checkpointing = true

[run]
steps = 20
prompts_per_step = 4
"""
WORDS = tuple(
    text.encode()
    for text in (
        *("steps", "epochs: 2\n", "rewards:\n", "dataset: countdown\n", "extends: ./r.yaml\n", "extends: [1]\n"),
        *("use: ", "mix: []\n", "weight: -1", "./x.py:f", "os:system", "hf:", "ms:a/b", "package:x", "pkg.mod:f?x=1"),
        *(
            "plugins: {disable: [grpo-rewards-math]}\n",
            "weight: .inf\n",
            "path: 3\n",
            "name: a.b\n",
            "lora: {rank: 2}\n",
        ),
    )
)
TRUTHS = YAML.replace(b"gradient_checkpointing: true", b"gradient_checkpointing: t")
"""pydantic would read it as true."""
PERCENT = YAML.replace(b'"rows.jsonl#50"', b'"%rows.jsonl#50"')
"""Whose full spelling is %25rows.jsonl."""
NOTHING_IN_RUN = YAML.partition(b"run:\n")[0] + b"run:\n"
EMPTY_SECTION = TOML.partition(b"steps")[0]
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
Leaf = tuple[tuple[str | int, ...], Any]


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """Every single value, with where it is; empty mappings and lists count as values."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inside or not value:
        yield path, value
        return
    for key, inner in inside:
        yield from leaves(inner, (*path, key))


def meant(file: Path) -> Any:
    """What the file says, by another reader than ours; None where that one reads another YAML than 1.2."""
    if file.suffix == ".toml":
        return tomllib.loads(file.read_text(encoding="utf-8"))
    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return None


def planned(file: Path) -> dict[str, Any] | GrpoError:
    """The recipe in the plan, or the error. Whatever else is raised fails the test: that is a traceback."""
    try:
        plan, _ = make_plan(gather(str(file), {}))
    except GrpoError as error:
        return error
    return plan.recipe.model_dump(mode="json")


def is_the_same(written: Any, value: Any) -> bool:
    """Whether a value of the plan is what the file says: text as it is, or what the text means as a scalar."""
    if written in ({}, "") and isinstance(value, dict):
        return True  # a section with nothing in it says nothing: all in it has its default
    if isinstance(written, str) and not isinstance(value, str):
        return value in _scalars(written)
    return bool(written == value or (not written and not value))


def _scalars(text: str) -> tuple[Any, ...]:
    named = {"": None, "~": None, "null": None, "true": True, "false": False}
    if text.lower() in named:
        return (named[text.lower()],)
    try:
        return (float(text), int(text, 0) if text[:2] in ("0o", "0x") else float(text))
    except ValueError:
        return ()


def find(values: Any, path: tuple[str | int, ...]) -> Any:
    """The value of the plan at a path of the file; sections in their short form stand for their main key."""
    for key in path:
        if isinstance(values, dict) and key not in values:
            raise KeyError(path)
        values = values[key]
    return values


def check(folder: Path, name: str, data: bytes) -> None:
    file = folder / name
    file.write_bytes(data)
    found = planned(file)
    if isinstance(found, GrpoError):
        assert found.exit_code in (2, 3)
        assert found.message
        return
    said = meant(file)
    if said is None:
        return
    assert isinstance(said, dict)
    assert "extends" not in said or said["extends"] is None or file.name not in str(said["extends"])
    for path, written in leaves({key: value for key, value in said.items() if key != "extends"}):
        assert _is_in_the_plan(found, path, written), f"{path}: {written!r} is not in the plan"


def _is_in_the_plan(plan: dict[str, Any], path: tuple[str | int, ...], written: Any) -> bool:
    short = {"model": "path", "dataset": "use", "rollout": "use", "trainer": "use"}
    if len(path) == 1 and path[0] in short and isinstance(written, str):
        path = (*path, short[str(path[0])])
    if path and isinstance(path[-1], int) and path[:-1] in (("rewards",), ("dataset", "mix")):
        path = (*path, "use")
    value = find(plan, path)
    if path[-1] in ("use", "path", "system", "preprocess", "chat_template", "evaluation", "tokenizer", "adapter"):
        return isinstance(value, str) and (value == written or _plain(value).endswith(_plain(written).lstrip("./")))
    return is_the_same(written, value)


def _plain(reference: Any) -> str:
    """A reference without the escapes that its full spelling has."""
    return re.sub("%(23|25|26|2C|3F)", lambda code: chr(int(code[1], 16)), str(reference), flags=re.IGNORECASE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the recipes name."""
    (tmp_path / "model").mkdir()
    return tmp_path


def test_the_sound_recipes_are_plans(folder: Path) -> None:
    for name, data in (("r.yaml", YAML), ("r.toml", TOML)):
        check(folder, name, data)
        assert not isinstance(planned(folder / name), GrpoError)
    assert [reward_name({"use": "format_reward"}), *mix_names([{"use": "rows.jsonl"}])] == ["format_reward", "rows"]


@given(data=mutated(YAML, extra=WORDS))
@example(data=TRUTHS)
@example(data=PERCENT)
@example(data=NOTHING_IN_RUN)
@settings(max_examples=60, deadline=None, suppress_health_check=SHARED)
def test_a_broken_yaml_file_is_planned_as_written_or_refused(folder: Path, data: bytes) -> None:
    check(folder, "r.yaml", data)


@given(data=mutated(TOML, extra=WORDS))
@example(data=EMPTY_SECTION)
@settings(max_examples=40, deadline=None, suppress_health_check=SHARED)
def test_a_broken_toml_file_is_planned_as_written_or_refused(folder: Path, data: bytes) -> None:
    check(folder, "r.toml", data)


@pytest.mark.slow
@given(data=mutated(YAML, extra=WORDS), toml=st.none() | mutated(TOML, extra=WORDS))
@settings(max_examples=3000, deadline=None, suppress_health_check=SHARED)
def test_broken_files_are_planned_as_written_or_refused_thoroughly(
    folder: Path, data: bytes, toml: bytes | None
) -> None:
    check(folder, "r.yaml", data)
    if toml is not None:
        check(folder, "r.toml", toml)
