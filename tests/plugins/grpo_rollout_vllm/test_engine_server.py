"""Runs with a real vLLM server on the CPU. It takes a minute or two to start, so most tests share one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from grpo_core.loop.checked import generate
from tests.integration.runs import completions_of, grpoctl, metrics_of
from tests.plugins.grpo_rollout_vllm.drill import Moment, kill_in
from tests.plugins.grpo_rollout_vllm.making import request, rollout
from tests.plugins.grpo_rollout_vllm.real_server import RealServer, make_served_model
from tests.plugins.grpo_rollout_vllm.workplace import FP32_GAP_NATS, check_gaps, make_place, run_arguments

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("default"),  # of the engines' own making
]

SLOW = {"wait_limit_s": 600.0, "silence_limit_s": 120.0, "look_interval_s": 0.5}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_place(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[RealServer]:
    with RealServer(place / "model", place / "server.log") as server:
        yield server.wait()


def arguments(server: RealServer, output: str, *more: str, steps: int = 4) -> list[str]:
    return run_arguments(output, "--set", f"rollout.options.urls=[{server.url}]", *more, steps=steps)


def test_engine_and_trainer_agree_at_every_step_and_versions_advance(server: RealServer, place: Path) -> None:
    grpoctl(place, *arguments(server, "server"))
    check_gaps(place / "server")
    assert server.label().startswith("grpo-3-")
    assert len(completions_of(place / "server")) == 4 * 12
    said = (place / "server.log").read_text()
    assert "Failed to load weights" not in said  # of layers that have none of their own
    assert "HTTP/1.1" not in said  # a line for each request


@pytest.mark.parametrize(
    "more",
    [
        ("rollout.options.transfer=network",),
        ("rollout.options.weights_folder=./lying",),
        ("rollout.temperature=0.7", "rollout.top_p=0.9", "rollout.repetition_penalty=1.1"),
        ("rollout.stop=[e]",),
    ],
    ids=["network", "folder", "penalty", "stop"],
)
def test_weights_get_there_by_every_way_and_every_setting_is_compared_like_with_like(
    more: tuple[str, ...], server: RealServer, place: Path, request: pytest.FixtureRequest
) -> None:
    output = request.node.callspec.id
    grpoctl(place, *arguments(server, output, *(part for setting in more for part in ("--set", setting))))
    check_gaps(place / output)
    if output == "stop":
        texts = [str(row["completion"]) for row in completions_of(place / output)]
        assert all("e" not in text[:-1] for text in texts)


def test_two_ranks_draw_what_one_draws(server: RealServer, place: Path) -> None:
    command = arguments(server, "two", "--nproc-per-node", "2")
    subprocess.run([sys.executable, "-m", "grpo_core", *command], cwd=place, check=True, timeout=300)
    check_gaps(place / "two")
    assert [row["completion"] for row in completions_of(place / "two")] == [
        row["completion"] for row in completions_of(place / "server")
    ]


def test_a_step_ahead_generates_while_the_trainer_updates(server: RealServer, place: Path) -> None:
    limits = ("--set", "rollout.max_staleness=1", "--set", "rollout.max_gap_nats=0.3", "--nproc-per-node", "2")
    command = [sys.executable, "-m", "grpo_core", *arguments(server, "ahead", *limits)]
    subprocess.run(command, cwd=place, check=True, timeout=300)
    rows = metrics_of(place / "ahead")
    assert [row["sampler/staleness_max"] for row in rows] == [0.0, 1.0, 1.0, 1.0]
    assert float(str(rows[0]["sampler/gap_max"])) < FP32_GAP_NATS
    assert all(float(str(row["sampler/fresh_gap_max"])) < FP32_GAP_NATS for row in rows[:-1])
    first = [row["completion"] for row in completions_of(place / "ahead") if row["step"] == 1]
    assert first == [row["completion"] for row in completions_of(place / "server") if row["step"] == 1]


def test_a_missed_update_makes_the_comparison_fail(server: RealServer, place: Path) -> None:
    (place / "forgetful.py").write_text(
        "from grpo_core.api import RolloutSpec, hookimpl\n"
        "from grpo_rollout_vllm.rollout import ServerRollout\n\n\n"
        "class Forgetful(ServerRollout):\n"
        "    def load_weights(self, stream, version):\n"
        "        list(stream) if version == 2 else super().load_weights(stream, version)\n\n\n"
        "@hookimpl\n"
        "def grpo_rollout_backends():\n"
        '    yield RolloutSpec(name="forgetful", summary="s", target=f"{__file__}:Forgetful",\n'
        '        options="grpo_rollout_vllm.options:VllmRolloutOptions", capabilities=frozenset({"weights:stream"}))\n',
        encoding="utf-8",
    )
    ran = grpoctl(place, *arguments(server, "missed", "--plugin", "forgetful.py", "--rollout", "forgetful"), code=4)
    assert "step 3: the trainer gives the sampled tokens other log-probabilities" in ran.stderr


def test_what_is_computed_after_an_update_is_the_new_model_also_where_the_head_is_tied(
    server: RealServer, place: Path, tmp_path: Path
) -> None:
    other = AutoModelForCausalLM.from_pretrained(make_served_model(tmp_path / "other", seed=1), dtype=torch.float32)
    with rollout(place / "model", tmp_path, server.url, **SLOW) as backend:
        backend.load_weights(other.state_dict().items(), 7)
        (group,) = generate(backend, [request(n=2, max_tokens=12)])
    for completion in group.completions:
        ids = torch.tensor([[*group.request.prompt_ids, *completion.token_ids]])
        with torch.no_grad():
            logits = other(ids).logits[0, len(group.request.prompt_ids) - 1 : -1]
        expected = logits.log_softmax(-1).gather(-1, torch.tensor(completion.token_ids)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(completion.sampling_logprobs), expected, atol=1e-4, rtol=0)
        assert completion.policy_version == 7


def weights_kept_by(run: subprocess.Popen[bytes]) -> list[Path]:
    """What a run of one process has in shared memory for its servers; other runs may have theirs beside it."""
    return list(Path("/dev/shm").glob(f"grpo-weights-*-{run.pid}-*"))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["generation", "update", "between"])
def test_drill_a_server_that_is_killed_comes_back_and_the_run_goes_on(
    moment: Moment, server: RealServer, place: Path
) -> None:
    output = f"drill-{moment}"
    command = arguments(server, output, "--set", "rollout.max_completion_tokens=96", steps=5)
    run = subprocess.Popen([sys.executable, "-m", "grpo_core", *command], cwd=place)
    try:
        kill_in(server, moment)
        assert weights_kept_by(run)
        server.start()
        assert run.wait(900) == 0
    finally:
        run.kill()
        server.wait()
    check_gaps(place / output, steps=5)
    assert not weights_kept_by(run)
