from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.plugins.host import PluginHost
from grpo_core.plugins.light import heavy_imports


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "grpo_light"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    return folder


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch\n", ["torch (grpo_light/plugin.py:1)"]),
        ("\nfrom transformers import AutoModel\n", ["transformers (grpo_light/plugin.py:2)"]),
        ("try:\n    import vllm.engine as e\nexcept ImportError:\n    e = None\n", ["vllm (grpo_light/plugin.py:2)"]),
        ("from grpo_light import rewards\n", ["torch (grpo_light/rewards.py:3)"]),
        ("from . import rewards\n", ["torch (grpo_light/rewards.py:3)"]),
        ("from .rewards import f\n", ["torch (grpo_light/rewards.py:3)"]),
        ("from grpo_core.trainer import backend\n", None),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n", []),
        ("def later():\n    import torch\n", []),
        ("from grpo_core.api import RewardSpec, hookimpl\nimport json, os.path\n", []),
        ("import torchless\n", []),
    ],
)
def test_what_a_module_imports_when_it_is_imported_is_followed(
    package: Path, source: str, found: list[str] | None
) -> None:
    (package / "plugin.py").write_text(source)
    (package / "rewards.py").write_text("\n\nimport torch\n\ndef f(completions):\n    pass\n")
    told = heavy_imports("grpo_light.plugin")
    assert told == found if found is not None else any(line.startswith("torch (grpo_core/") for line in told)


def test_what_the_packages_own_init_imports_counts(package: Path) -> None:
    (package / "__init__.py").write_text("import datasets\n")
    (package / "plugin.py").write_text("")
    assert heavy_imports("grpo_light.plugin") == ["datasets (grpo_light/__init__.py:1)"]


def test_every_installed_plugin_is_light() -> None:
    for plugin in PluginHost.load().admitted:
        assert [what for place in plugin.modules for what in heavy_imports(place)] == [], plugin.distribution


def test_a_file_is_looked_at_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import jax\n")
    assert heavy_imports(str(file)) == [f"jax ({file}:1)"]
