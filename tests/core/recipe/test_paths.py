from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import DataError
from grpo_core.recipe.paths import anchor, read_text_setting


@pytest.mark.parametrize(
    ("written", "absolute"),
    [
        ({"model": {"path": "./tiny"}}, {"model": {"path": "/r/tiny"}}),
        ({"model": {"path": "Qwen/Qwen2.5-3B"}}, {"model": {"path": "Qwen/Qwen2.5-3B"}}),
        ({"model": {"path": "hf:Qwen/Qwen2.5-3B"}}, {"model": {"path": "Qwen/Qwen2.5-3B"}}),
        ({"model": {"path": "a", "tokenizer": "../t"}}, {"model": {"path": "a", "tokenizer": "/t"}}),
        ({"trainer": {"lora": {"adapter": "./a"}}}, {"trainer": {"lora": {"adapter": "/r/a"}}}),
        ({"trainer": {"lora": {"adapter": "hf:o/a"}}}, {"trainer": {"lora": {"adapter": "o/a"}}}),
        ({"trainer": {"lora": None}}, {"trainer": {"lora": None}}),
        ({"model": {"path": "tiny.gguf"}}, {"model": {"path": "/r/tiny.gguf"}}),
        ({"dataset": {"use": "rows.jsonl#50"}}, {"dataset": {"use": "/r/rows.jsonl#50"}}),
        ({"dataset": {"use": "geo?path=./f.parquet#20"}}, {"dataset": {"use": "geo?path=/r/f.parquet#20"}}),
        ({"dataset": {"use": "hf:a/b", "evaluation": "./e"}}, {"dataset": {"use": "hf:a/b", "evaluation": "/r/e"}}),
        ({"dataset": {"preprocess": "p.py:f"}}, {"dataset": {"preprocess": "/r/p.py:f"}}),
        ({"dataset": {"system": "Be brief."}}, {"dataset": {"system": "Be brief."}}),
        ({"rewards": [{"use": "./m.py:f"}, {"use": "fmt"}, 3]}, {"rewards": [{"use": "/r/m.py:f"}, {"use": "fmt"}, 3]}),
        ({"run": {"directory": "runs/a"}}, {"run": {"directory": "runs/a"}}),
        ({"model": 3, "dataset": None, "rewards": "x"}, {"model": 3, "dataset": None, "rewards": "x"}),
    ],
)
def test_paths_start_at_the_base(written: dict[str, Any], absolute: dict[str, Any]) -> None:
    assert anchor(written, Path("/r")) == (absolute, [])


def test_what_was_given_is_left_alone() -> None:
    written = {"model": {"path": "./tiny"}, "rewards": [{"use": "./m.py:f"}]}
    anchor(written, Path("/r"))
    assert written == {"model": {"path": "./tiny"}, "rewards": [{"use": "./m.py:f"}]}


def test_a_folder_beside_the_recipe_may_be_the_model(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    assert anchor({"model": {"path": "tiny"}}, tmp_path)[0] == {"model": {"path": str(tmp_path / "tiny")}}


@pytest.mark.parametrize("name", ["final", "m/final", "runs/m/final", "runs/m/final/adapter", "my runs/final"])
def test_a_folder_that_is_there_is_meant_whatever_the_number_of_its_parts(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    written = {"model": {"path": name}, "trainer": {"lora": {"adapter": name}}}
    there = str(tmp_path / name)
    assert anchor(written, tmp_path) == ({"model": {"path": there}, "trainer": {"lora": {"adapter": there}}}, [])


def test_two_parts_whose_first_is_a_folder_here_are_no_id_of_the_hub(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    _, faults = anchor({"model": {"path": "m/fnal"}}, tmp_path)
    hint = "If the model of the hub is meant, write hf:m/fnal."
    assert faults == [(("model", "path"), f"'m/fnal': the folder {tmp_path / 'm'} has no 'fnal'. {hint}")]
    assert anchor({"model": {"path": "hf:m/fnal"}}, tmp_path) == ({"model": {"path": "m/fnal"}}, [])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("ms:a/b", "ModelScope models are not loaded by id. Download it and give its folder."),
        ("./m.py:f", "cannot be a model"),
        ("a/b#5", "asks for #5 rows, but is not a dataset"),
        ("a/b?revision=x", "unknown detail 'revision'"),
    ],
)
def test_what_cannot_be_a_model_says_why(path: str, message: str) -> None:
    _, [(where, text)] = anchor({"model": {"path": path}}, Path("/r"))
    assert where == ("model", "path")
    assert message in text


def test_what_is_no_reference_is_a_fault_of_its_setting() -> None:
    values, faults = anchor({"dataset": {"use": "rows.jsonl#x"}, "rewards": [{"use": "a:b:c"}]}, Path("/r"))
    assert [path for path, _ in faults] == [("dataset", "use"), ("rewards", 0, "use")]
    assert "'#x' is not a number of rows" in faults[0][1]
    assert values["dataset"]["use"] == "rows.jsonl#x"


def test_a_system_prompt_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "system.txt").write_text("Think first.\n", encoding="utf-8")
    for written in ("system.txt", "./system.txt", str(tmp_path / "system.txt")):
        values, faults = anchor({"dataset": {"system": written}}, tmp_path)
        assert (values["dataset"]["system"], faults) == (str(tmp_path / "system.txt"), [])
        assert read_text_setting(written, base=tmp_path) == "Think first.\n"


@pytest.mark.parametrize(
    "text", ["Be brief.", "/no_think", "See notes.md", "a\nb.txt", "", "{{ messages }}", "x" * 5000]
)
def test_other_texts_say_what_they_say(text: str) -> None:
    assert read_text_setting(text) == text


def test_a_missing_prompt_file_is_found_where_it_was_written(tmp_path: Path) -> None:
    _, [(path, message)] = anchor({"dataset": {"system": "sytem.txt"}}, tmp_path)
    assert path == ("dataset", "system")
    assert message.startswith(f"'{tmp_path}/sytem.txt' cannot be read: No such file")


def test_a_prompt_file_must_be_text(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="it is not text in UTF-8"):
        read_text_setting("s.txt", base=tmp_path)
