"""Cases of the area `vision`: image cells through the real path, from a row to what a model's processor is given; and
completions against a reference."""

from __future__ import annotations

import base64
import io
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import PIL.Image
import PIL.ImageDraw

from grpo_core.cli.planning import gather, make_plan
from grpo_core.data.columns import map_row
from grpo_core.data.prepare import load_data
from grpo_core.data.prompts import render_prompts
from grpo_core.errors import GrpoError
from grpo_core.model.pixels import open_image
from grpo_core.model.tokenizer import load_tokenizer
from grpo_core.model.vision import Vision, load_vision
from grpo_core.types import BuildContext, ImageRef, Sample
from tests.cases.areas import math
from tests.cases.expect import ClearError, difference
from tests.vl_models import VlFamily, make_vl_folder

__all__ = ["check"]


def check(case: dict[str, Any]) -> str | None:
    """None when the outcome is right, else what is wrong with it."""
    if "reward" in case:
        return math.check(case)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, case.get("env", {})):
        case = _in_folder(case, Path(folder))
        try:
            outcome = _outcome(case, Path(folder))
        except GrpoError as error:
            return difference(ClearError(str(error)), case)
        return difference(outcome, case)


def any_answer(completions: list[str]) -> list[float]:
    """A reward that needs no column."""
    return [0.0] * len(completions)


def _outcome(case: dict[str, Any], folder: Path) -> dict[str, object]:
    if "rows" in case:
        samples = _samples(case["rows"], folder)
        for image in (image for sample in samples for image in sample.images):
            open_image(image)
        return _facts_of_rows(samples)
    cells = case["columns"] if "columns" in case else {"images": case["images"]}
    cells = {name: _cell(value) for name, value in cells.items()}
    sample = map_row({"query": "What is shown?", **cells}).sample
    opened = [open_image(image) for image in sample.images]
    first = opened[0]
    facts: dict[str, object] = {
        "loaded": len(opened),
        "size": list(first.size),
        "mode": first.mode,
        "channels": len(first.getbands()),
        "not_all_black": first.getextrema() != ((0, 0),) * 3,
    }
    if "model_family" not in case:
        return facts
    vision, settings = _vision(case["model_family"])
    limit = case.get("config", {}).get("max_prompt_length")
    render_prompts([sample], load_tokenizer(settings), max_prompt_tokens=limit, over_long="error", vision=vision)
    return facts | _facts_of_size(vision, sample.images[0], first.size, case)


def _facts_of_rows(samples: Sequence[Sample]) -> dict[str, object]:
    content = samples[0].messages[-1].content
    parts = [part for piece in content.split("<image>") for part in (piece, "<image>")][:-1]
    order = ["image" if part == "<image>" else "text" for part in parts if part.strip()]
    return {
        "ok": True,
        "images_per_row": [len(sample.images) for sample in samples],
        "image_parts": order.count("image"),
        "order": order,
    }


def _facts_of_size(
    vision: Vision, image: ImageRef, size: tuple[int, int], case: Mapping[str, Any]
) -> dict[str, object]:
    """What the processor is given; of a bound that a case names, the bound itself where it holds."""
    width, height = vision.resized(image).size
    change = (width / height) / (size[0] / size[1])
    facts: dict[str, object] = {"width": width, "height": height, "tokens": vision.tokens_of(image)}
    for wanted in (case["expected"], *case.get("also_ok", [])):
        bounds = wanted if isinstance(wanted, dict) else {}
        for name, bound in bounds.items():
            holds = {
                "min_side_at_least": lambda bound=bound: min(width, height) >= bound,
                "aspect_kept_within": lambda bound=bound: abs(change - 1) <= bound,
                "multiple_of": lambda bound=bound: width % bound == height % bound == 0,
                "area_at_most": lambda bound=bound: width * height <= bound,
            }.get(name)
            if holds is not None and holds():
                facts[name] = bound
    return facts


@lru_cache(maxsize=8)
def _folder(family: VlFamily) -> Path:
    """A model whose images are bounded as those on the hub are."""
    folder = make_vl_folder(family, Path(tempfile.mkdtemp()) / family)
    file = folder / "preprocessor_config.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    side = content["patch_size"] * content["merge_size"]
    content["size"] = {"shortest_edge": 4 * side * side, "longest_edge": 16384 * side * side}
    file.write_text(json.dumps(content), encoding="utf-8")
    return folder


def _vision(family: VlFamily) -> tuple[Vision, Any]:
    """As a run would read images, the environment considered."""
    flags = {"model": str(_folder(family)), "dataset": "countdown", "rewards": f"{__file__}:any_answer"}
    plan, _ = make_plan(gather(None, flags))
    vision = load_vision(plan.recipe.model)
    assert vision is not None
    return vision, plan.recipe.model


def _samples(rows: Sequence[Mapping[str, Any]], folder: Path) -> Sequence[Sample]:
    file = folder / "rows.jsonl"
    written = [{**row, "images": [_path(cell, folder) for cell in row["images"]]} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in written), encoding="utf-8")
    flags = {"model": "none", "dataset": str(file), "rewards": f"{__file__}:any_answer"}
    plan, _ = make_plan(gather(None, flags))
    return load_data(plan, BuildContext()).train


def _path(cell: Any, folder: Path) -> Any:
    if not isinstance(cell, dict):
        return cell
    path = folder / f"{len(list(folder.iterdir()))}.png"
    _drawn(cell["image_spec"]).save(path)
    return str(path)


def _in_folder(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    for name, content in case.get("files", {}).items():
        (folder / name).write_bytes(base64.b64decode(content))
    text: dict[str, Any] = json.loads(json.dumps(case).replace("{TMP}", str(folder)))
    return text


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return [_cell(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "image_spec" in value:
        return _drawn(value["image_spec"])
    if "__pil_from_b64__" in value:
        return PIL.Image.open(io.BytesIO(base64.b64decode(value["__pil_from_b64__"])))
    if "__bytes_b64__" in value:
        return base64.b64decode(value["__bytes_b64__"])
    return {name: _cell(item) for name, item in value.items()}


def _drawn(spec: Mapping[str, Any]) -> PIL.Image.Image:
    fill = spec.get("fill", 120)
    bands = len(PIL.Image.new(spec["mode"], (1, 1)).getbands())
    colour = tuple(fill) if isinstance(fill, list) else fill if bands == 1 else (fill,) * bands
    picture = PIL.Image.new(spec["mode"], tuple(spec["size"]), colour)
    if "draw" in spec:
        line, pen = spec["draw"]["line"], tuple(spec["draw"]["colour"])
        PIL.ImageDraw.Draw(picture).line([tuple(point) for point in line], fill=pen)
    return picture
