"""What some settings need beside the framework's own dependencies: LoRA needs peft, a GGUF file a reader of it,
`ms:` ids ModelScope's client, images Pillow (`model/pixels.py` says so where a row has one).

They are extras of grpo-core (`pip install 'grpo-core[lora]'`). Their metadata is read here and nothing is imported, so
a run that lacks one stops before anything loads.
"""

from __future__ import annotations

from collections.abc import Iterator

from grpo_core.plugins.catalog import not_installed
from grpo_core.recipe.checks import Finding
from grpo_core.recipe.schema import Recipe
from grpo_core.recipe.syntax import KeyPath

__all__ = ["EXTRAS", "GGUF_SUFFIX", "missing_extras"]

EXTRAS: dict[str, tuple[str, ...]] = {
    "gguf": ("accelerate>=1.15", "gguf>=0.19"),
    "lora": ("peft>=0.21",),
    "modelscope": ("modelscope>=1.40",),
    "vision": ("pillow>=12.3",),
}
"""Extra -> its requirements, as in grpo-core's pyproject.toml."""
GGUF_SUFFIX = ".gguf"


def missing_extras(recipe: Recipe) -> Iterator[Finding]:
    """One finding for each setting whose packages are not installed."""
    if recipe.trainer.lora is not None:
        yield from _missing("lora", ("trainer", "lora"), "LoRA")
    if recipe.model.path.lower().endswith(GGUF_SUFFIX):
        yield from _missing("gguf", ("model", "path"), "a GGUF file")


def _missing(extra: str, path: KeyPath, what: str) -> Iterator[Finding]:
    missing = not_installed(EXTRAS[extra])
    if missing:
        message = f"{what} needs {' and '.join(missing)}, not installed here; pip install 'grpo-core[{extra}]'"
        yield Finding(path, message)
