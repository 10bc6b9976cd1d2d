"""The examples of docs/writing-a-recipe.md and docs/data.md are run as they stand there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from grpo_core.recipe.schema import DataSettings
from tests.integration.runs import grpoctl

DOCS = Path(__file__).parents[2] / "docs"


def block(page: str, language: str, part: str) -> str:
    """The code block in `language` that contains `part`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [each for each in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) if part in each]
    assert len(found) == 1, (page, language, part)
    return str(found[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the worked example."""
    page = "writing-a-recipe.md"
    for name, language, part in (
        ("rows.jsonl", "json", "Anna"),
        ("mine.py", "python", "def exact"),
        ("sums.yaml", "yaml", "model: Qwen"),
        ("quick.yaml", "yaml", "extends: ./sums.yaml"),
    ):
        (tmp_path / name).write_text(block(page, language, part), encoding="utf-8")
    return tmp_path


def test_the_checks_of_the_worked_example_say_what_the_page_says(folder: Path) -> None:
    for part in ("is sound", "wieght"):
        command, _, output = block("writing-a-recipe.md", "console", part).partition("\n")
        done = grpoctl(folder, *command.removeprefix("$ grpoctl ").split(), code=None)
        assert (done.stdout + done.stderr).strip() == output.strip()


def test_the_explanation_of_the_worked_example_has_the_lines_of_the_page(folder: Path) -> None:
    command, *lines = block("writing-a-recipe.md", "console", "recipe explain").splitlines()
    shown = [line.split() for line in grpoctl(folder, *command.removeprefix("$ grpoctl ").split()).stdout.splitlines()]
    assert all(line.split() in shown for line in lines if line != "…")


def test_the_reward_of_the_worked_example_pays_the_right_answer_only(folder: Path) -> None:
    names: dict[str, object] = {}
    exec(compile((folder / "mine.py").read_text(encoding="utf-8"), "mine.py", "exec"), names)  # noqa: S102
    row = json.loads((folder / "rows.jsonl").read_text(encoding="utf-8"))
    texts = ["<answer>7</answer>", "<answer>7</answer><answer>8</answer>", "7"]
    assert names["exact"](texts, [row["solution"]] * 3) == [1.0, 0.0, 0.0]  # type: ignore[operator]


def test_the_mix_on_the_data_page_is_a_recipe() -> None:
    values = yaml.safe_load(block("data.md", "yaml", "mix:"))
    settings = DataSettings.model_validate(values["dataset"])
    assert [entry.weight for entry in settings.mix] == [0.7, 0.3]


def test_the_preprocessor_on_the_data_page_makes_samples_of_rows(tmp_path: Path) -> None:
    (tmp_path / "prep.py").write_text(block("data.md", "python", "def to_sample"), encoding="utf-8")
    rows = [{"nums": [3, 4], "target": 7}, {"nums": [], "target": 1}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    shown = grpoctl(
        tmp_path, "datasets", "preview", "rows.jsonl", "--set", "dataset.preprocess=./prep.py:to_sample", "--json"
    )
    facts = json.loads(shown.stdout)
    assert [sample["messages"][0]["content"] for sample in facts["samples"]] == ["Make 7 of [3, 4]."]
    assert facts["columns"] == ["nums", "target"]
    assert facts["dropped"] == {"the preprocessor dropped them": 1}
