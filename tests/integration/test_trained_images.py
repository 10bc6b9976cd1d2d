"""Runs with images: what is drawn is what is trained on, however they are cut off, shared out and adapted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runs import REWARD, completions_of, grpoctl, metrics_of, train_arguments
from tests.vl_models import VlFamily, encoded_picture, make_vl_folder

SAVING = ("--save-steps", "2")

DRAWS_PLACEHOLDERS = """
from dataclasses import replace

from grpo_core.api import RolloutSpec, hookimpl


def make_rollout(options, context):
    from grpo_core.model.vision import load_vision
    from grpo_core.rollout.backend import TransformersRollout
    from grpo_core.rollout.options import TransformersRolloutOptions

    token = load_vision(context.model).image_token_id

    def spoiled(completion):
        place = min(2, len(completion.token_ids) - 1)
        ids = (*completion.token_ids[:place], token, *completion.token_ids[place + 1 :])
        return replace(completion, token_ids=ids)

    class Rollout(TransformersRollout):
        def generate(self, requests):
            for group in super().generate(requests):
                yield replace(group, completions=(spoiled(group.completions[0]), *group.completions[1:]))

    return Rollout(TransformersRolloutOptions(), context)


@hookimpl
def grpo_rollout_backends():
    yield RolloutSpec(
        name="spoiling",
        summary="s",
        target=f"{__file__}:make_rollout",
        capabilities=frozenset({"images", "weights:shared"}),
    )
"""


def make_place(folder: Path, family: VlFamily = "qwen2_vl") -> Path:
    """A folder with `model/`, pictures, `rows.jsonl`, of which every third row has none, and `mine.py`."""
    make_vl_folder(family, folder / "model")
    rows: list[dict[str, Any]] = []
    for number in range(12):
        row: dict[str, Any] = {"query": f"Say {number}", "wanted": number % 2, "images": []}
        if number % 3:
            (folder / f"{number}.png").write_bytes(encoded_picture(number, (56 + 8 * number, 64)))
            row.update(query=f"<image>Say {number}", images=[f"{number}.png"])
        rows.append(row)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "mine.py").write_text(REWARD, encoding="utf-8")
    return folder


def gaps(run: Path) -> list[float]:
    return [float(str(row["sampler/gap_max"])) for row in metrics_of(run)]


def test_a_resumed_run_with_images_is_bit_identical(tmp_path: Path) -> None:
    make_place(tmp_path)
    extra = ("--beta", "0.05", "--num-iterations", "2", "--set", "rollout.repetition_penalty=1.1")
    small = ("--set", "trainer.micro_batch_tokens=100", "--set", "trainer.freeze=[embed_tokens]")
    grpoctl(tmp_path, *train_arguments("whole", *SAVING, *extra, *small))
    run = tmp_path / "cut"
    shutil.copytree(tmp_path / "whole", run)
    shutil.rmtree(run / "final")
    shutil.rmtree(run / "checkpoints" / "step-000004")
    assert "finished after 4 steps" in grpoctl(tmp_path, "resume", "cut").stdout
    assert metrics_of(run) == metrics_of(tmp_path / "whole")
    assert completions_of(run) == completions_of(tmp_path / "whole")
    assert max(gaps(run)) < 1e-4
    assert all(row["trainer/visual_tokens"] for row in metrics_of(run))
    whole = (tmp_path / "whole/final/model.safetensors").read_bytes()
    assert (run / "final/model.safetensors").read_bytes() == whole


def test_what_a_run_leaves_trains_again(tmp_path: Path) -> None:
    make_place(tmp_path, "idefics3")
    grpoctl(tmp_path, *train_arguments("first", "--steps", "2", "--lora-rank", "4", "--precision", "bf16"))
    grpoctl(tmp_path, *train_arguments("second", "--steps", "1", "--model", "first/final"))
    assert max(gaps(tmp_path / "first")) < 0.5
    assert max(gaps(tmp_path / "second")) < 1e-4


def test_completions_with_placeholders_are_counted_and_not_trained_on(tmp_path: Path) -> None:
    make_place(tmp_path)
    (tmp_path / "own.py").write_text(DRAWS_PLACEHOLDERS, encoding="utf-8")
    grpoctl(tmp_path, *train_arguments("run", "--plugin", "own.py", "--rollout", "spoiling", "--steps", "2"))
    for row in metrics_of(tmp_path / "run"):
        assert row["completions/placeholders"] == 3
        assert float(str(row["sampler/gap_max"])) < 1e-4


def test_a_name_to_freeze_that_is_nowhere_is_told_before_the_model_is_loaded(tmp_path: Path) -> None:
    make_place(tmp_path)
    ran = grpoctl(tmp_path, *train_arguments("run", "--set", "trainer.freeze=[visul]"), code=2)
    assert "trainer.freeze.0" in ran.stderr
    assert "no module or weight 'visul'; did you mean 'visual'?" in ran.stderr
    adapted = ("--lora-rank", "4", "--set", "trainer.lora.vision=true", "--set", "trainer.freeze=[vision]")
    ran = grpoctl(tmp_path, *train_arguments("run", *adapted), code=2)
    assert "trainer.freeze.0: 'vision' has model.visual.blocks.0." in ran.stderr
    assert "which trainer.lora adds or trains" in ran.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("sharding", ["none", "full"])
def test_two_processes_train_on_images_as_one_does(tmp_path: Path, sharding: str) -> None:
    make_place(tmp_path)
    extra = ("--steps", "2", "--set", "trainer.micro_batch_tokens=200")
    grpoctl(tmp_path, *train_arguments("one", *extra))
    options = ("--nproc-per-node", "2", "--oversubscribe", "--set", f"trainer.options.sharding={sharding}")
    grpoctl(tmp_path, *train_arguments("two", *extra, *options))
    assert max(gaps(tmp_path / "two")) < 1e-4
    one, two = metrics_of(tmp_path / "one")[0], metrics_of(tmp_path / "two")[0]
    for name in ("reward/mean", "trainer/loss", "trainer/grad_norm", "policy/entropy"):
        assert two[name] == pytest.approx(one[name], rel=1e-4, abs=1e-6)
