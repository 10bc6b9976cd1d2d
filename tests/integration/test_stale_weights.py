"""A rollout engine that misses one weight update is found in the next step, whatever it says its version is."""

from __future__ import annotations

from pathlib import Path

from tests.integration.runs import grpoctl, make_workplace, metrics_of, train_arguments

ENGINE = '''
from grpo_core.api import RolloutSpec, hookimpl
from grpo_core.rollout.backend import TransformersRollout
from grpo_core.rollout.options import TransformersRolloutOptions


class Forgetful(TransformersRollout):
    """A copy of the weights, which stays as it was at one update."""

    def load_weights(self, stream, version):
        if version == MISSED:
            list(stream)
            self._policy_version = version
        else:
            super().load_weights(stream, version)


def make(options, context):
    return Forgetful(options, context)


@hookimpl
def grpo_rollout_backends():
    yield RolloutSpec(
        name="forgetful",
        summary="Misses an update",
        target=f"{__file__}:make",
        options="grpo_core.rollout.options:TransformersRolloutOptions",
        capabilities=frozenset({"weights:stream", "overlaps"}),
    )
'''


def arguments(folder: Path, *more: str, missed: int) -> list[str]:
    make_workplace(folder)
    (folder / "engine.py").write_text(ENGINE.replace("MISSED", str(missed)), encoding="utf-8")
    limit = ("--set", "rollout.max_gap_nats=0.001")
    engine = ("--plugin", "engine.py", "--rollout", "forgetful")
    return train_arguments("run", *engine, *limit, "--save-steps", "1", *more)


def test_a_missed_update_stops_the_run_before_anything_is_saved_of_it(tmp_path: Path) -> None:
    ran = grpoctl(tmp_path, *arguments(tmp_path, missed=2), code=4)
    assert (
        "step 3: the trainer gives the sampled tokens other log-probabilities than the rollout engine did" in ran.stderr
    )
    assert "where 0.001 are allowed (rollout.max_gap_nats)" in ran.stderr
    assert [row["step"] for row in metrics_of(tmp_path / "run")][-1] == 3
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == [
        "step-000001",
        "step-000002",
    ]


def test_one_step_ahead_it_is_found_before_anything_is_learnt_from_it(tmp_path: Path) -> None:
    ran = grpoctl(tmp_path, *arguments(tmp_path, "--set", "rollout.max_staleness=1", missed=2), code=4)
    assert "step 3: the trainer gives the sampled tokens other log-probabilities" in ran.stderr
    assert [row["step"] for row in metrics_of(tmp_path / "run")][-1] == 2


def test_without_a_missed_update_the_same_run_goes_to_its_end(tmp_path: Path) -> None:
    grpoctl(tmp_path, *arguments(tmp_path, missed=99))
    assert [row["step"] for row in metrics_of(tmp_path / "run")] == [1, 2, 3, 4]
