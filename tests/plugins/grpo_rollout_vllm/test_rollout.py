"""A run and its servers, without a fault: weights get there, groups come back."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grpo_core.api import FinishReason, RolloutError
from grpo_core.loop.checked import generate
from tests.plugins.grpo_rollout_vllm.making import request, rollout, weights
from tests.plugins.grpo_rollout_vllm.stand_in import END, StandIn


def test_a_prompt_is_sent_once_for_all_its_completions(server: StandIn, model: Path, tmp_path: Path) -> None:
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 3)
        (group,) = generate(backend, [request(65, n=3, temperature=0.7, repetition_penalty=1.1)])
    assert [body["token_ids"] for body in server.prompts] == [[72, 101, 108, 108, 111]]
    params = server.prompts[0]["sampling_params"]
    assert {name: params[name] for name in ("n", "seed", "temperature", "repetition_penalty", "stop_token_ids")} == {
        "n": 3,
        "seed": 65,
        "temperature": 0.7,
        "repetition_penalty": 1.1,
        "stop_token_ids": [END],
    }
    assert [completion.text for completion in group.completions] == ["bcde", "cdef", "defg"]
    assert {completion.policy_version for completion in group.completions} == {3}
    assert {completion.sampling_logprobs for completion in group.completions} == {(-0.5,) * 4}
    assert {completion.finish_reason for completion in group.completions} == {FinishReason.LENGTH}
    assert group.logprob_space == "raw"


def test_a_part_of_a_group_draws_from_the_seeds_that_the_whole_one_would_have(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
        whole = request(65, n=4)
        (group,) = generate(backend, [whole])
        (part,) = generate(backend, [replace(whole, n=2, first_member=2)])
    assert part.completions == group.completions[2:]


@pytest.mark.parametrize("transfer", ["folder", "network"])
def test_a_server_has_every_weight_under_a_label_that_says_which(
    transfer: str, server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url, transfer=transfer) as backend:
        backend.load_weights(weights(1.0), 0)
        first = server.label
        backend.load_weights(weights(2.0), 1)
        assert first.startswith("grpo-0-")
        assert server.label.startswith("grpo-1-")
        assert not server.paused
        for name, tensor in weights(2.0):
            torch.testing.assert_close(server.weights[name], tensor, rtol=0, atol=0)
    updates = server.asked[-server.asked[::-1].index("/pause") - 1 :]
    without_looks = [name for name in updates if name not in ("/weight_info", "grpo_sees", "/inference/v1/generate")]
    assert without_looks == [
        "/pause",
        "grpo_load" if transfer == "folder" else "grpo_receive",
        "/reset_prefix_cache",
        "/reset_encoder_cache",
        "/update_weight_version",
        "/resume",
    ]


def test_weights_that_lie_about_are_those_of_the_last_update_and_go_with_the_run(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url) as backend:
        for version in range(3):
            backend.load_weights(weights(float(version)), version)
        assert [folder.name for folder in (tmp_path / "weights").glob("*/*")] == ["v2"]
    assert list((tmp_path / "weights").iterdir()) == []


def test_prompts_are_balanced_over_servers_and_groups_come_as_they_finish(
    server: StandIn, other: StandIn, model: Path, tmp_path: Path
) -> None:
    slow = threading.Event()
    server.before["/inference/v1/generate"] = lambda _: slow.wait(60) and None
    with rollout(model, tmp_path, server.url, other.url, prompts_in_flight=2) as backend:
        backend.load_weights(weights(), 0)
        groups = backend.generate([request(number) for number in range(1, 9)])
        first = [next(groups) for _ in range(6)]
        slow.set()
        assert len(first) + len(list(groups)) == 8
    assert min(len(server.prompts), len(other.prompts)) >= 2
    assert len(server.prompts) + len(other.prompts) == 8


def test_no_server_has_more_prompts_at_once_than_allowed(server: StandIn, model: Path, tmp_path: Path) -> None:
    at_once: list[int] = []
    inside = Counter[str]()
    answer = server.answer

    def counting(path: str, body: dict[str, object]) -> tuple[int, object]:
        if path != "/inference/v1/generate":
            return answer(path, body)
        inside["now"] += 1
        at_once.append(inside["now"])
        time.sleep(0.02)
        inside["now"] -= 1
        return answer(path, body)

    server.answer = counting  # type: ignore[method-assign]
    with rollout(model, tmp_path, server.url, prompts_in_flight=3) as backend:
        backend.load_weights(weights(), 0)
        assert len(list(backend.generate([request(number) for number in range(1, 10)]))) == 9
    assert max(at_once) <= 3


def test_other_ranks_wait_for_rank_0_to_bring_the_weights(server: StandIn, model: Path, tmp_path: Path) -> None:
    with (
        rollout(model, tmp_path, server.url) as first,
        rollout(model, tmp_path, server.url, rank=1) as second,
    ):
        waiting = threading.Thread(target=second.load_weights, args=(weights(), 5))
        waiting.start()
        time.sleep(0.1)
        assert waiting.is_alive()
        first.load_weights(weights(), 5)
        waiting.join(5)
        (group,) = generate(second, [request()])
    assert group.completions[0].policy_version == 5


def test_without_weights_nothing_is_asked(server: StandIn, model: Path, tmp_path: Path) -> None:
    with (
        rollout(model, tmp_path, server.url) as backend,
        pytest.raises(RolloutError, match="there are no weights yet\n  call load_weights before generate"),
    ):
        backend.generate([request()])


def test_a_consumer_that_stops_early_leaves_no_prompt_waiting(server: StandIn, model: Path, tmp_path: Path) -> None:
    with rollout(model, tmp_path, server.url, prompts_in_flight=1) as backend:
        backend.load_weights(weights(), 0)
        groups = backend.generate([request(number) for number in range(1, 50)])
        next(groups)
        groups.close()  # type: ignore[attr-defined]
        time.sleep(0.1)
        answered = len(server.prompts)
        time.sleep(0.1)
        assert len(server.prompts) == answered < 49
