"""What can be set about the dataset `code`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["CodeRowsOptions"]


class CodeRowsOptions(BaseModel):
    """Options of the dataset `code`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    wording: Literal["tags", "block", "none"] = "tags"
    """What the prompt says after the problem: `tags` asks for reasoning in <think> and a Python block in <answer>,
    `block` for a Python block, `none` for nothing. The first two also say what is to be written, a script or which
    function, and show the starter code."""
