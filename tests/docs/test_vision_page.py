"""docs/vision.md: its table has the settings of the recipes, and its preprocessor is run as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.integration.runs import grpoctl
from tests.plugins.grpo_datasets_vision.test_recipes import EMBEDDED
from tests.vl_models import encoded_picture

PAGE = (Path(__file__).parents[2] / "docs" / "vision.md").read_text(encoding="utf-8")
ROWS = {
    "completions of a prompt": "rollout.completions_per_prompt",
    "passes over a step (`num_iterations`)": "trainer.num_iterations",
    "tokens of a completion, at most": "rollout.max_completion_tokens",
    "`max_grad_norm`": "trainer.max_grad_norm",
    "`model.max_pixels`": "model.max_pixels",
}
"""First cell of a row of the table -> the setting that it has the value of."""


def table() -> dict[str, dict[str, str]]:
    """Recipe -> first cell of each row -> its cell."""
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]
    start = next(place for place, cells in enumerate(lines) if "`clevr-count`" in cells)
    names = [name.strip("`") for name in lines[start][-3:]]
    rows = [cells for cells in lines[start + 1 :] if len(cells) == 4]
    return {name: {cells[0]: cells[place] for cells in rows} for place, name in enumerate(names, start=1)}


@pytest.mark.parametrize("recipe", ["clevr-count", "geoqa", "open-r1-multimodal"])
def test_the_table_has_the_settings_of_the_recipe(recipe: str, tmp_path: Path) -> None:
    told = json.loads(grpoctl(tmp_path, "recipe", "explain", recipe, "--json", *EMBEDDED).stdout)
    cells = table()[recipe]
    for title, setting in ROWS.items():
        value = told[setting]["value"]
        assert cells[title].split(" ")[0] == ("the" if value is None else str(value)), title
    prompts = told["run.completions_per_step"]["value"] // told["rollout.completions_per_prompt"]["value"]
    assert cells["prompts of a step"] == str(prompts)
    assert told["dataset.use"]["value"] == f"hf:{cells['rows of (Hugging Face)'].strip('`')}"


def test_the_preprocessor_makes_samples_of_rows_with_images(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "defects.py").write_text(next(each for each in blocks if "def to_sample" in each), encoding="utf-8")
    (tmp_path / "0.png").write_bytes(encoded_picture(0))
    rows = [{"photo": "0.png", "part": "bolt", "verdict": verdict} for verdict in ("yes", "unclear")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = re.search(r"^\$ grpoctl (datasets preview rows.jsonl .*)$", PAGE, re.MULTILINE)
    assert command is not None
    facts = json.loads(grpoctl(tmp_path, *command[1].split(), "--json").stdout)
    assert facts["samples"][0]["messages"][0]["content"].startswith("<image>Is the bolt defective? Think in <think>")
    assert facts["columns"] == ["part", "solution"]
    assert facts["dropped"] == {"the preprocessor dropped them": 1}
