"""Whole runs with DeepSpeed by the real command: they are the run of one process with torch, and resume bit by bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments
from tests.integration.test_resume import cut_to_step_two
from tests.integration.test_several_processes import EVERYTHING, assert_same_run

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]

DEEPSPEED = ("--trainer", "deepspeed", "--set", "trainer.options.device=cpu")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make_workplace(tmp_path, tie_word_embeddings=True)


def test_two_processes_in_stage_3_make_the_run_of_torch_resume_bit_by_bit_and_go_on_as_one(place: Path) -> None:
    extra = (*EVERYTHING, "--save-steps", "2")
    grpoctl(place, *train_arguments("one", *extra))
    grpoctl(place, *train_arguments("whole", *extra, *DEEPSPEED, "--nproc-per-node", "2"))
    assert_same_run(place / "one", place / "whole")
    cut_to_step_two(place / "whole", place / "run")
    grpoctl(place, "resume", "run", "--nproc-per-node", "2")
    assert metrics_of(place / "run") == metrics_of(place / "whole")
    assert completions_of(place / "run") == completions_of(place / "whole")
    whole = (place / "whole/final/model.safetensors").read_bytes()
    assert (place / "run/final/model.safetensors").read_bytes() == whole
    cut_to_step_two(place / "whole", place / "alone")
    grpoctl(place, "resume", "alone")
    assert_same_run(place / "one", place / "alone")


def test_four_groups_on_six_processes_make_the_run_of_torch(place: Path) -> None:
    four = ("--steps", "2", "--prompts-per-step", "4", "--completions-per-prompt", "3")
    grpoctl(place, *train_arguments("one", *four))
    grpoctl(place, *train_arguments("run", *four, *DEEPSPEED, "--nproc-per-node", "6", "--oversubscribe"))
    assert_same_run(place / "one", place / "run")
