"""Probe answers of real runs: fixed prompts, cut back and bit-identical on resume, and nothing they do is felt."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.integration.runs import completions_of, grpoctl, make_workplace, metrics_of, train_arguments

BREAKS = '''
def breaks_on_probes(completions, finish_reasons):
    """Training asks for three prompts of four completions, one call a group; a probe is alone."""
    if len(completions) == 1:
        raise RuntimeError("probed")
    return [float(len(text)) for text in completions]
'''


def probes_of(run: Path) -> dict[str, list[dict[str, Any]]]:
    files = sorted((run / "probes").iterdir())
    return {file.name: [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in files}


def test_the_same_prompts_are_answered_greedily_and_sampled_every_so_many_steps(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    settings = ("--set", "run.probe_every_steps=3", "--set", "run.probe_prompts=2", "--eval-rows", "4")
    grpoctl(tmp_path, *train_arguments("run", *settings))
    probes = probes_of(tmp_path / "run")
    assert list(probes) == ["step-000000.jsonl", "step-000003.jsonl", "step-000004.jsonl"]
    asked = [[(row["sample_id"], row["drawn"]) for row in rows] for rows in probes.values()]
    assert [drawn for _, drawn in asked[0]] == ["greedy", "greedy", "sampled", "sampled"]
    assert len({name for name, _ in asked[0] if name.startswith("evaluation-")}) == 2
    assert asked == [asked[0]] * 3
    assert [row["step"] for row in probes["step-000003.jsonl"]] == [3] * 4
    assert all({"format_reward", "vowels"} == set(row["scores"]) for row in probes["step-000000.jsonl"])


def test_probes_change_nothing_about_the_run(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("with"))
    grpoctl(tmp_path, *train_arguments("without", "--set", "run.probe_prompts=0"))
    assert metrics_of(tmp_path / "with") == metrics_of(tmp_path / "without")
    assert completions_of(tmp_path / "with") == completions_of(tmp_path / "without")
    assert len(probes_of(tmp_path / "with")) == 5
    assert probes_of(tmp_path / "without") == {}


def test_probes_are_cut_back_and_bit_identical_on_resume(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    grpoctl(tmp_path, *train_arguments("whole", "--save-steps", "2"))
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / "whole", cut)
    shutil.rmtree(cut / "final")
    shutil.rmtree(cut / "checkpoints" / "step-000004")
    (cut / "probes" / "step-000004.jsonl").write_text('{"half a', encoding="utf-8")
    grpoctl(tmp_path, "resume", "cut")
    assert probes_of(cut) == probes_of(tmp_path / "whole")


def test_a_reward_that_fails_on_the_probes_does_not_stop_the_run(tmp_path: Path) -> None:
    make_workplace(tmp_path)
    (tmp_path / "mine.py").write_text(BREAKS, encoding="utf-8")
    arguments = train_arguments("run", "--set", "run.probe_prompts=1")
    arguments[arguments.index("--rewards") + 1] = "./mine.py:breaks_on_probes"
    done = grpoctl(tmp_path, *arguments)
    assert "finished" in done.stdout
    row = probes_of(tmp_path / "run")["step-000000.jsonl"][0]
    assert (row["total"], row["scores"]) == (None, {"breaks_on_probes": None})
    assert "probed" in row["failures"]["breaks_on_probes"]
