"""docs/configuration.md lists every flag and every setting as the code has them.

`python tests/docs/test_configuration_page.py` writes both tables into the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import typer

from grpo_core.cli.flags import FLAGS, flags_table
from grpo_core.cli.main import build_app
from grpo_core.recipe.manual import settings, settings_tables
from grpo_core.recipe.schema import Recipe

_PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
_TABLES: dict[str, Callable[[], str]] = {"flags": flags_table, "settings": settings_tables}


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)


@pytest.mark.parametrize("name", _TABLES)
def test_the_page_has_the_tables_of_the_code(name: str) -> None:
    found = _pattern(name).search(_PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == f"\n{_TABLES[name]()}\n", f"run: python {Path(__file__).name}"


def test_every_flag_is_a_setting_and_has_a_name_of_its_own() -> None:
    paths = {setting.path for setting in settings()} | {"rewards", "rewards.*.weight", "dataset.mix.*.weight"}
    assert {".".join(flag.path) for flag in FLAGS} <= paths
    assert len({flag.name for flag in FLAGS}) == len({flag.path for flag in FLAGS}) == len(FLAGS)


def test_every_option_of_train_is_on_the_page() -> None:
    text = _PAGE.read_text(encoding="utf-8")
    train = cast(Any, typer.main.get_command(build_app())).commands["train"]
    options = [option for parameter in train.params for option in parameter.opts]
    assert "--nproc-per-node" in options
    assert [option for option in options if f"`{option}" not in text] == []


def test_the_example_on_the_page_is_a_recipe() -> None:
    import yaml

    example = re.search(r"```yaml\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    values = yaml.safe_load(example[1])
    values["trainer"]["learning_rate"] = float(values["trainer"]["learning_rate"])  # text in YAML 1.1
    assert Recipe.model_validate(values).run.prompts_per_step == 16


if __name__ == "__main__":
    text = _PAGE.read_text(encoding="utf-8")
    for name, table in _TABLES.items():
        text = _pattern(name).sub(lambda _, table=table: f"\n{table()}\n", text)
    _PAGE.write_text(text, encoding="utf-8")
