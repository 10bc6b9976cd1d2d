"""Lets torchvision be imported beside the CPU build of PyTorch; run when the engines' environment starts a Python.

vLLM imports torchvision for models that read images. The one on PyPI is built for CUDA, and beside PyTorch's CPU build
it fails as it is imported, since two operators, which nobody here uses, are not there. They are declared before that.
A torchvision made for the CPU needs none of this.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OPERATORS = ("nms", "qnms")
_kept: list[Any] = []


class _BeforeTorchvision(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            import torch

            library = torch.library.Library("torchvision", "DEF")
            for operator in _OPERATORS:
                library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            _kept.append(library)  # whose end would take its operators with it
        return None


sys.meta_path.insert(0, _BeforeTorchvision())
