"""A run's folder between runs: one writer, and what happens when something in it is damaged, lost or left over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grpo_core.loop.lock import LOCK_FILE, hold
from tests.integration.runs import grpoctl, make_workplace, metrics_of, train_arguments
from tests.integration.test_resume import contents

SAVING = ("--save-steps", "1", "--eval-rows", "2")
NEWEST = "checkpoints/step-000003"
DELETES = """
import shutil

def deletes(completions, step):
    if step == 2:
        shutil.rmtree("run", ignore_errors=True)
    return [None for _ in completions]
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workplace with a run `whole` that ended."""
    folder = make_workplace(tmp_path_factory.mktemp("trained"))
    grpoctl(folder, *train_arguments("whole", *SAVING))
    return folder


@pytest.fixture
def place(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, with a run `cut` that was killed during its last step."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    shutil.rmtree(tmp_path / "cut" / "final")
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / "step-000004")
    return tmp_path


def assert_same_run(place: Path) -> None:
    assert metrics_of(place / "cut") == metrics_of(place / "whole")
    weights = "final/model.safetensors"
    assert (place / "cut" / weights).read_bytes() == (place / "whole" / weights).read_bytes()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 64
    path.write_bytes(data)


def test_a_folder_that_is_being_written_is_refused_to_writers_and_open_to_readers(place: Path) -> None:
    with hold(place / "cut"):
        before = contents(place / "cut")
        for command in (["resume", "cut"], ["resume", f"cut/{NEWEST}"], ["resume", "cut", "--nproc-per-node", "2"]):
            assert "cut is being written by process" in grpoctl(place, *command, code=2).stderr
        grpoctl(place, "report", "cut", "-o", "report.html")
        grpoctl(place, "rewards", "rescore", "cut", "--step", "1")
        assert "eval/reward_mean" in grpoctl(place, "eval", "cut").stdout
        assert contents(place / "cut") == before
    (place / "new").mkdir()
    with hold(place / "new"):
        refused = grpoctl(place, *train_arguments("new"), code=2)
        assert "new is being written by process" in refused.stderr
        assert [path.name for path in (place / "new").iterdir()] == [LOCK_FILE]


def test_a_flipped_bit_is_found_and_the_run_goes_on_from_what_is_sound(place: Path) -> None:
    run = place / "cut"
    flip(run / NEWEST / "trainer" / "weights.safetensors")
    flip(run / "checkpoints" / "step-000002" / "trainer" / "optimizer.safetensors")
    before = contents(run)
    refused = grpoctl(place, "resume", "cut", code=4).stderr
    assert f"cut/{NEWEST} is damaged: trainer/weights.safetensors is not what was written" in refused
    assert "the newest older one that is sound: grpoctl resume " in refused
    refused = grpoctl(place, "eval", "cut", code=4).stderr
    assert "trainer/weights.safetensors is not what was written" in refused
    hint = refused.strip().rpartition("grpoctl ")[2]
    assert hint.split("/")[-1] == "step-000001"
    grpoctl(place, *hint.split())
    assert contents(run) == before
    grpoctl(place, *hint.replace("eval", "resume").split())
    assert_same_run(place)


def test_what_is_damaged_beside_the_weights_costs_nothing(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = place / "cut"
    (run / "plan.json").write_bytes(b"")
    (run / "checkpoints" / "step-garbage").mkdir()
    (run / "completions" / "step-garbage.jsonl").touch()
    lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (run / "metrics.jsonl").write_bytes(b"".join([lines[0], b"\0\0\n", *lines[1:-1], lines[-1][:30]]))
    grpoctl(place, "resume", "cut")
    told = [record.getMessage() for record in caplog.records]
    for words in (
        "plan.json is no plan that grpo-core ",
        f"its copy in {run.name}/{NEWEST} is taken",
        "step-garbage is no checkpoint: its name or kind is another; it is left alone",
        "metrics.jsonl is damaged: line 2 is not JSON; kept apart in",
    ):
        assert any(words in line for line in told), told
    assert (run / "metrics.damaged").read_bytes() == b"\0\0\n"
    assert (run / "plan.json").read_bytes() == (place / "whole" / "plan.json").read_bytes()
    assert_same_run(place)


def test_a_folder_that_is_deleted_while_the_run_goes_on_is_the_runs_error(trained: Path, tmp_path: Path) -> None:
    make_workplace(tmp_path)
    (tmp_path / "other.py").write_text(DELETES, encoding="utf-8")
    arguments = train_arguments("run", *SAVING)
    arguments[arguments.index("--rewards") + 1] += ",./other.py:deletes"
    done = grpoctl(tmp_path, *arguments, "--set", "rewards.deletes.runs_in=main", code=4)
    assert "run was removed or moved while the run went on, after step 1: it lacks the completions" in done.stderr
    assert "finished" not in done.stdout
    run, mine = tmp_path / "run", "rewards/deletes/"
    rows = [{k: v for k, v in row.items() if not k.startswith(mine)} for row in metrics_of(run)]
    assert rows == metrics_of(trained / "whole")
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == [f"step-00000{step}" for step in (2, 3, 4)]
    weights = "final/model.safetensors"
    assert (run / weights).read_bytes() == (trained / "whole" / weights).read_bytes()


def test_the_corrected_command_of_a_run_that_made_no_step_begins_in_its_place(place: Path) -> None:
    (place / "broken.py").write_text("def vowels(completions):\n    return [1 / 0]\n", encoding="utf-8")
    grpoctl(place, *train_arguments("new", "--rewards", "./broken.py:vowels"), code=4)
    assert not (place / "new" / LOCK_FILE).exists()
    done = grpoctl(place, *train_arguments("new", "--steps", "1"))
    assert "the run in new made no step: this one begins in its place" in done.stdout
    assert [row["step"] for row in metrics_of(place / "new")] == [1]
    refused = grpoctl(place, *train_arguments("new"), code=2)
    assert "'new' is not empty; `grpoctl resume new` goes on with a run" in refused.stderr
