"""A model that may not run its own code is data: whatever its files say, nothing of them runs."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from grpo_core.errors import DataError, RecipeError
from grpo_core.model.load import load_model, model_config
from grpo_core.model.tokenizer import load_tokenizer, render_text
from grpo_core.recipe.schema import ModelSettings
from grpo_core.types import Message
from tests.tiny_models import make_model_folder


class Canary:
    """Unpickled, it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_model_folder(tmp_path / "model")


def test_weights_in_a_pickle_are_tensors_and_nothing_else(folder: Path, mark: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({**weights, "more": Canary(mark)}, folder / "pytorch_model.bin")
    with pytest.raises((RecipeError, pickle.UnpicklingError)):
        load_model(ModelSettings(path=str(folder)), torch.float32)
    assert not mark.exists()


def test_code_of_a_model_is_refused_or_left_alone(folder: Path, mark: Path) -> None:
    for name in ("configuration_x.py", "tokenization_x.py"):
        (folder / name).write_text(f"import os\nos.mkdir({str(mark)!r})\n", encoding="utf-8")
    for name, classes in (
        ("config.json", {"AutoConfig": "configuration_x.X", "AutoModelForCausalLM": "configuration_x.Y"}),
        ("tokenizer_config.json", {"AutoTokenizer": ["tokenization_x.T", None]}),
    ):
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps(content | {"auto_map": classes}), encoding="utf-8")
    settings = ModelSettings(path=str(folder))
    load_tokenizer(settings)
    load_model(settings, torch.float32)  # a type that the library knows is its own class
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(content | {"model_type": "other"}), encoding="utf-8")
    with pytest.raises(RecipeError, match=r"needs Python code that it brings; .*: model.trust_remote_code=true"):
        model_config(settings)
    own = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    own |= {"auto_map": {"AutoTokenizer": ["tokenization_x.T", "tokenization_x.F"]}, "tokenizer_class": "Other"}
    (folder / "tokenizer_config.json").write_text(json.dumps(own), encoding="utf-8")
    with pytest.raises(RecipeError, match=r"its tokenizer needs Python code .*: model.trust_remote_code=true"):
        load_tokenizer(settings)
    assert not mark.exists()


@pytest.mark.parametrize(
    "reach",
    [
        "cycler.__init__.__globals__.os",
        "messages.__class__.__mro__[1].__subclasses__()",
        "raise_exception.__globals__",
        "strftime_now.__globals__['__builtins__']['__import__']('os')",
    ],
)
def test_a_chat_template_reaches_no_python(folder: Path, mark: Path, reach: str) -> None:
    template = f"{{{{ ({reach}).mkdir({str(mark)!r}) }}}}"
    tokenizer = load_tokenizer(ModelSettings(path=str(folder)))
    tokenizer.chat_template = template
    with pytest.raises(DataError):
        render_text([Message(role="user", content="Hello")], tokenizer)
    assert not mark.exists()


@pytest.mark.parametrize("source", ["import sys; sys.exit(0)", "1 / 0", "class Other: pass", "def f(:"])
def test_code_of_a_model_that_fails_is_a_fault_of_the_model(
    folder: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(folder.parent / "modules"))
    (folder / "configuration_x.py").write_text(source, encoding="utf-8")
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    content |= {"auto_map": {"AutoConfig": "configuration_x.X"}, "model_type": "other"}
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RecipeError, match=r"cannot be loaded with the code that it brings: .*"):
        model_config(ModelSettings(path=str(folder), trust_remote_code=True))
