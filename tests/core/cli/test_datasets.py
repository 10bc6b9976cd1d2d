"""`grpoctl datasets`: what is registered, and rows as model and rewards see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from grpo_core.cli.main import build_app
from grpo_core.errors import DataError, GrpoError, RecipeError, UnknownComponent
from tests.core.plugins.installed import write_plugin
from tests.tiny_models import make_model_folder

SUMS = """
    from grpo_core.api import DatasetSpec, Message, Sample, hookimpl
    from pydantic import BaseModel, ConfigDict

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")
        sign: str = "+"

    def make(options, context):
        def to_sample(row):
            if row["a"] == 3:
                return None
            text = f"{row['a']}{options.sign}{row['a']}?"
            return Sample(messages=(Message(role="user", content=text),), columns=row)
        return to_sample

    def rows(options, *, split, seed):
        return ({"a": a, "seed": seed} for a in range(5))

    @hookimpl
    def grpo_dataset_preprocessors():
        yield DatasetSpec(
            name="sums",
            summary="Sums of [two] equal numbers",
            target=f"{__file__}:make",
            options=f"{__file__}:Options",
            source=f"{__file__}:rows",
            hub_ids=("acme/sums",),
            aliases=("additions",),
        )
"""


@pytest.fixture
def sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("GRPO_DISABLE_PLUGINS", raising=False)
    return str(write_plugin(tmp_path, SUMS, name="sums.py"))


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "[bold]6*7?", "gold": "42", "level": null}\n{"text": "6*8?", "gold": 48}\n')
    return str(file)


def datasets(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["datasets", *arguments], catch_exceptions=False)


def preview(*arguments: str) -> Any:
    return json.loads(datasets("preview", *arguments, "--json").stdout)


def test_list_shows_names_hub_ids_and_summaries(sums: str) -> None:
    shown = datasets("list", "--plugin", sums).stdout
    assert "sums" in shown
    assert "makes them itself" in shown
    assert "acme/sums" in shown
    assert "Sums of [two] equal numbers" in shown


def test_list_as_json_says_what_can_be_written(sums: str) -> None:
    facts = {each["qualified_name"]: each for each in json.loads(datasets("list", "--plugin", sums, "--json").stdout)}
    assert facts["sums.py/sums"] == {
        "name": "sums",
        "qualified_name": "sums.py/sums",
        "summary": "Sums of [two] equal numbers",
        "aliases": ["additions"],
        "makes_rows": True,
        "hub_ids": ["acme/sums"],
    }


def test_without_any_dataset_list_says_what_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_DISABLE_PLUGINS", "grpo-rewards-math,grpo-rewards-code,grpo-datasets-vision")
    assert "No dataset is registered" in datasets("list").stdout


def test_a_file_is_shown_as_messages_and_columns(rows: str) -> None:
    shown = datasets("preview", rows, "--columns", "text=query", "--columns", "gold=solution", "--system", "Be brief.")
    assert shown.stdout.splitlines() == [
        "train-000000",
        "  system",
        "    Be brief.",
        "  user",
        "    [bold]6*7?",
        '  solution = "42"',
        "  level = null",
        "",
        "train-000001",
        "  system",
        "    Be brief.",
        "  user",
        "    6*8?",
        "  solution = 48",
        "  level = null",
        "",
        "2 rows; rewards can read: level, solution",
    ]


def test_with_a_model_the_rendered_prompt_is_shown(rows: str, tmp_path: Path) -> None:
    model = str(make_model_folder(tmp_path / "model"))
    shown = datasets("preview", rows, "--columns", "text=query", "--model", model, "--rows", "1").stdout
    assert "  prompt, 29 tokens\n    <|im_start|>user\n    [bold]6*7?<|im_end|>\n    <|im_start|>assistant\n" in shown
    sample = preview(rows, "--columns", "text=query", "--model", model, "--rows", "1")["samples"][0]
    assert sample["prompt"] == "<|im_start|>user\n[bold]6*7?<|im_end|>\n<|im_start|>assistant\n"
    assert sample["prompt_tokens"] == 29


def test_a_chat_template_is_a_file_or_its_text_as_in_a_run(rows: str, tmp_path: Path) -> None:
    model, template = str(make_model_folder(tmp_path / "model")), "{{ greeting }}: {{ messages[0].content }}"
    file = tmp_path / "greeting.jinja"
    file.write_text(template, encoding="utf-8")
    common = (rows, "--columns", "text=query", "--model", model, "--set", "model.chat_template_options.greeting=Hello")
    for setting in (template, str(file)):
        shown = preview(*common, "--set", f"model.chat_template='{setting}'")
        assert shown["samples"][0]["prompt"] == "Hello: [bold]6*7?"


def test_a_model_without_chat_template_is_warned_about(rows: str, tmp_path: Path) -> None:
    model = str(make_model_folder(tmp_path / "model", chat_template=False))
    done = datasets("preview", rows, "--columns", "text=query", "--model", model)
    assert "### User:" in done.stdout
    assert "warning: the tokenizer has no chat template" in done.stderr


def test_json_holds_everything(rows: str) -> None:
    assert preview(rows, "--columns", "text=question", "--rows", "1") == {
        "rows": 2,
        "columns": ["gold", "level"],
        "dropped": {},
        "samples": [
            {
                "id": "train-000000",
                "messages": [{"role": "user", "content": "[bold]6*7?"}],
                "images": [],
                "columns": {"gold": "42", "level": None},
            }
        ],
        "warnings": [],
    }


def test_a_registered_dataset_takes_options_and_counts_what_it_drops(sums: str) -> None:
    shown = preview("sums", "--plugin", sums, "--set", "dataset.options.sign=-", "--set", "run.seed=7")
    assert [sample["messages"][0]["content"] for sample in shown["samples"]] == ["0-0?", "1-1?", "2-2?"]
    assert shown["samples"][1]["columns"] == {"a": 1, "seed": 7}
    assert shown["rows"] == 4
    assert shown["dropped"] == {"the preprocessor dropped them": 1}
    assert "1 rows left out: the preprocessor dropped them" in datasets("preview", "sums", "--plugin", sums).stdout


def test_a_file_goes_through_a_registered_preprocessor(sums: str, tmp_path: Path) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text("a\n5\n6\n")
    for arguments in ([f"sums?path={file}"], [str(file), "--set", "dataset.preprocess=sums"]):
        shown = preview(*arguments, "--plugin", sums)
        assert [sample["messages"][0]["content"] for sample in shown["samples"]] == ["5+5?", "6+6?"]


def test_values_that_json_does_not_know_are_shown_as_text_and_long_ones_are_cut(tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_text(json.dumps({"query": "q", "half": "\ud800", "long": "x" * 500}))
    assert preview(str(file))["samples"][0]["columns"] == {"half": "?", "long": "x" * 500}
    assert "… (502 characters)" in datasets("preview", str(file)).stdout
    table = pyarrow.table({"query": ["q"], "n": [float("nan")]})
    pyarrow.parquet.write_table(table, tmp_path / "odd.parquet")
    assert preview(str(tmp_path / "odd.parquet"))["samples"][0]["columns"] == {"n": "nan"}


def test_what_happened_to_rows_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text('[{"messages": [{"role": "user", "content": "a"}], "problem": "b"}]')
    assert "the column problem is not part of it (1 rows)" in datasets("preview", str(file)).stderr


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["gone.jsonl"], DataError, "there is no such file"),
        (["countdwn"], UnknownComponent, "no plugin registers a dataset 'countdwn'"),
        (["rows.jsonl", "--columns", "text"], RecipeError, "is not old=new"),
        (["rows.jsonl", "--set", "dataset.sytem=x"], RecipeError, "dataset.sytem"),
        (["rows.jsonl", "--system", "./gone.txt"], RecipeError, "gone.txt"),
        (["rows.jsonl"], DataError, "no column could be the prompt"),
        (["rows.jsonl", "--columns", "text=query", "--model", "./gone"], RecipeError, "there is no such folder"),
    ],
)
def test_a_mistake_is_a_clear_error(
    rows: str, monkeypatch: pytest.MonkeyPatch, arguments: list[str], error: type[GrpoError], message: str
) -> None:
    monkeypatch.chdir(Path(rows).parent)
    with pytest.raises(error, match=message):
        datasets("preview", *arguments)


def test_texts_in_any_script_are_shown_under_any_locale(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"query": "六乘七", "solution": "Größe 3²"}\n', encoding="utf-8")
    env = {**os.environ, "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = f"import sys; sys.argv = ['grpoctl', 'datasets', 'preview', {str(file)!r}]\n"
    code += "from grpo_core.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert "六乘七" in done.stdout.decode("utf-8")
    assert "Größe 3²" in done.stdout.decode("utf-8")


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['grpoctl', 'datasets', 'list']\n"
        "from grpo_core.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'transformers', 'datasets') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
