from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grpo_trainer_deepspeed.options import DeepSpeedOptions


def test_stage_3_is_meant_unless_option_or_json_name_another() -> None:
    assert DeepSpeedOptions().zero_stage == 3
    assert DeepSpeedOptions(stage=1).zero_stage == 1
    assert DeepSpeedOptions(config={"zero_optimization": {"stage": 2}}).zero_stage == 2
    assert DeepSpeedOptions(config={"zero_optimization": {"stage": "auto"}}).zero_stage == 3


def test_a_json_is_read_when_the_run_is_planned(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(json.dumps({"zero_optimization": {"stage": 1}}))
    options = DeepSpeedOptions(config=str(file))
    file.unlink()
    assert options.zero_stage == 1
    assert DeepSpeedOptions(**options.model_dump(mode="json")) == options


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory; a path starts at the working directory"),
        ("{", "is no JSON"),
        ("[1]", "holds a list; a DeepSpeed configuration is an object"),
    ],
)
def test_a_json_that_cannot_be_used_is_named(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "ds.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValidationError, match=said):
        DeepSpeedOptions(config=str(file))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"offload_optimizer": True, "stage": 0}, "offload_optimizer needs a stage of 1, 2 or 3"),
        ({"offload_parameters": True, "stage": 2}, "offload_parameters needs stage 3, and stage is 2"),
        ({"cpu_adam": True}, "cpu_adam steps in main memory: it needs offload_optimizer"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        DeepSpeedOptions(**options)


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        ({"stage": 0}, {}),
        ({"stage": 1}, {"masters": 0.25, "optimiser": 0.25, "gradients": 1.5}),
        ({"stage": 2}, {"masters": 0.25, "optimiser": 0.25, "gradients": 0.75}),
        ({"stage": 2, "offload_optimizer": True}, {"masters": 0.0, "optimiser": 0.0, "gradients": 0.5}),
        (
            {"stage": 3, "offload_parameters": True},
            dict.fromkeys(("masters", "optimiser", "gradients"), 0.25)
            | {"weights": 0.0, "reference": 0.0, "gathered weights": 1.0},
        ),
    ],
)
def test_the_estimate_of_memory_hears_what_a_rank_keeps(options: dict[str, Any], shares: dict[str, float]) -> None:
    assert DeepSpeedOptions(**options).memory_shares(4, 2) == shares


def test_the_page_names_every_option() -> None:
    page = (Path(__file__).parents[3] / "docs" / "engines.md").read_text(encoding="utf-8")
    section = page.split("## DeepSpeed training")[1]
    assert [name for name in DeepSpeedOptions.model_fields if f"`{name}`" not in section] == []
