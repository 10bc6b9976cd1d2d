from pathlib import Path

import pytest

from grpo_core.recipe.existence import absent_files, model_fault, weights_fault
from grpo_core.recipe.layers import make_layer


def _absent(values: dict[str, object], base: Path) -> list[str]:
    return list(map(str, absent_files(make_layer(values, {}, base=base))))


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-0.5B", "gpt2", "?"])
def test_a_hub_id_is_no_file(name: str) -> None:
    assert (model_fault(name), weights_fault(name)) == (None, None)


def test_a_folder_is_a_model_by_its_files(tmp_path: Path) -> None:
    assert model_fault(str(tmp_path)) == "the folder is empty: it is not a model in Hugging Face layout"
    (tmp_path / "notes.txt").touch()
    assert model_fault(str(tmp_path)) == "the folder has no config.json: it is not a model in Hugging Face layout"
    (tmp_path / "config.json").touch()
    assert model_fault(str(tmp_path)) is None
    assert weights_fault(str(tmp_path)) == "the folder has no weights: no file *.safetensors or pytorch_model*.bin"
    (tmp_path / "model.safetensors").touch()
    assert weights_fault(str(tmp_path)) is None


def test_what_is_there_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").touch()
    rows = "countdown?path=./rows.jsonl#5"
    assert _absent({"model": "a/b", "dataset": {"mix": ["rows.jsonl#5", rows, "hf:a/b", "a/b"]}}, tmp_path) == []
    assert _absent({"model": 3, "dataset": {"use": ["?"], "mix": 7, "evaluation": "a:b:c"}}, tmp_path) == []


def test_a_package_that_is_not_there_is_one_problem_not_two(tmp_path: Path) -> None:
    layer = make_layer({"model": {"path": "pkg:no_such_package/m.gguf"}}, {}, base=tmp_path)
    assert len(layer.problems) == 1
    assert absent_files(layer) == []


def test_what_is_not_there_is_named_with_its_setting(tmp_path: Path) -> None:
    values = {
        "model": {"path": "./m.gguf", "tokenizer": "./t"},
        "dataset": {"use": "countdown?path=./a.jsonl", "evaluation": "b.jsonl?split=test#3"},
        "trainer": {"lora": {"adapter": "./c"}},
    }
    assert _absent(values, tmp_path) == [
        f"model.path: {tmp_path}/m.gguf: there is no such file",
        f"model.tokenizer: {tmp_path}/t: there is no such file or folder",
        f"trainer.lora.adapter: {tmp_path}/c: there is no such file or folder",
        f"dataset.use: {tmp_path}/a.jsonl: there is no such file or folder",
        f"dataset.evaluation: {tmp_path}/b.jsonl: there is no such file or folder",
    ]
