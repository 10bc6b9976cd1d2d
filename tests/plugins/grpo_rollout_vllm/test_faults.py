"""What servers do wrong, and what a run makes of it: recovery where that is right, else an error that says who waited
for whom."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from grpo_core.api import RolloutError
from grpo_core.loop.checked import generate
from grpo_rollout_vllm import fleet
from tests.plugins.grpo_rollout_vllm.making import PROMPT, request, rollout, weights
from tests.plugins.grpo_rollout_vllm.stand_in import MODEL, StandIn

GENERATE = "/inference/v1/generate"


def soon(server: StandIn, after_s: float = 0.2) -> None:
    """The server comes back in a moment."""
    threading.Timer(after_s, server.start).start()


def die_and_come_back(server: StandIn) -> None:
    threading.Thread(target=server.die).start()
    soon(server)
    time.sleep(0.1)  # the connection breaks meanwhile


def test_where_no_server_is_the_run_says_who_waited_for_whom(model: Path, tmp_path: Path, server: StandIn) -> None:
    server.die()
    with (
        pytest.raises(RolloutError) as raised,
        rollout(model, tmp_path, server.url, wait_limit_s=0.3),
    ):
        pass
    assert f"rank 0 waited 0 s for every vLLM server to be there: {server.url} is down since" in raised.value.message
    assert "(connection refused)" in raised.value.message
    assert "grpoctl rollout --model" in str(raised.value.hint)
    assert list((tmp_path / "weights").iterdir()) == []


def test_a_wait_for_a_server_is_told_of_once_and_so_is_that_it_was_lost_and_is_back(
    server: StandIn, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fleet, "_TELL_AFTER_S", 0.0)
    server.die()
    soon(server)
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
        server.before[GENERATE] = die_and_come_back
        assert len(list(generate(backend, [request(number) for number in range(1, 5)]))) == 4
    told = [record.getMessage() for record in caplog.records if record.name == fleet.__name__]
    assert told[0].startswith("rank 0 waits for every vLLM server to be there, for up to 60 s: http://")
    assert sum("waits for every vLLM server" in line for line in told) == 1
    lost, again = (f"rank 0 {text} {server.url}" for text in ("lost the vLLM server", "asks the vLLM server"))
    assert [line.startswith(lost) for line in told].index(True) < [line.startswith(again) for line in told].index(True)


def test_a_run_may_be_started_before_its_server(server: StandIn, model: Path, tmp_path: Path) -> None:
    server.die()
    soon(server)
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
        assert len(list(generate(backend, [request()]))) == 1


def test_a_server_killed_while_it_generates_gets_the_weights_again_before_it_is_asked_again(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url, prompts_in_flight=1) as backend:
        backend.load_weights(weights(), 4)
        groups = generate(backend, [request(number) for number in range(1, 5)])
        kept = [next(groups)]
        server.before[GENERATE] = die_and_come_back
        kept += list(groups)
    assert {group.sample.id for group in kept} == {"train-1", "train-2", "train-3", "train-4"}
    assert {completion.policy_version for group in kept for completion in group.completions} == {4}
    assert server.asked.count("grpo_load") == 2
    first_answer_after = server.asked.index(GENERATE, len(server.asked) - server.asked[::-1].index("grpo_load"))
    assert "/update_weight_version" in server.asked[:first_answer_after]


def test_of_two_servers_one_killed_leaves_its_prompts_to_the_other(
    server: StandIn, other: StandIn, model: Path, tmp_path: Path
) -> None:
    server.before[GENERATE] = lambda killed: threading.Thread(target=killed.die).start() or time.sleep(0.1)
    with rollout(model, tmp_path, server.url, other.url) as backend:
        backend.load_weights(weights(), 1)
        assert len(list(generate(backend, [request(number) for number in range(1, 9)]))) == 8
        backend.load_weights(weights(2.0), 2)
        assert len(list(generate(backend, [request(number) for number in range(1, 9)]))) == 8
    assert other.label.startswith("grpo-2-")


def test_a_server_killed_between_steps_has_the_weights_before_the_next_prompt(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url, look_interval_s=60.0) as backend:
        backend.load_weights(weights(), 1)
        server.die()
        server.start()  # and nobody has looked meanwhile
        (group,) = generate(backend, [request()])
    assert group.completions[0].policy_version == 1
    assert server.label.startswith("grpo-1-")


@pytest.mark.parametrize("moment", ["/pause", "grpo_load", "/reset_prefix_cache", "/update_weight_version", "/resume"])
def test_a_server_killed_in_a_weight_update_gets_it_when_it_comes_back(
    moment: str, server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
        server.before[moment] = die_and_come_back
        backend.load_weights(weights(2.0), 1)
        (group,) = generate(backend, [request()])
    assert group.completions[0].policy_version == 1
    assert server.label.startswith("grpo-1-")
    assert not server.paused


def test_a_server_killed_in_a_transfer_over_the_network_gets_it_when_it_comes_back(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url, transfer="network") as backend:
        server.before["grpo_receive"] = die_and_come_back
        backend.load_weights(weights(), 0)
        assert len(list(generate(backend, [request()]))) == 1


def test_a_server_that_hangs_is_taken_for_dead_and_asked_again_when_it_wakes(
    server: StandIn, other: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url, other.url, silence_limit_s=0.2) as backend:
        backend.load_weights(weights(), 0)
        server.hang()
        assert len(list(generate(backend, [request(number) for number in range(1, 7)]))) == 6
        assert len(other.prompts) == 6
        server.wake()
        until = time.monotonic() + 60.0
        while not server.prompts and time.monotonic() < until:
            assert len(list(generate(backend, [request(number) for number in range(1, 7)]))) == 6
    assert server.prompts


def test_an_only_server_that_hangs_is_named_with_its_silence(server: StandIn, model: Path, tmp_path: Path) -> None:
    with rollout(model, tmp_path, server.url, silence_limit_s=0.2, wait_limit_s=0.5) as backend:
        backend.load_weights(weights(), 0)
        server.hang()
        with pytest.raises(RolloutError) as raised:
            list(generate(backend, [request(7)]))
    assert "for a vLLM server for sample 'train-7'" in raised.value.message
    assert "is down since" in raised.value.message
    assert "no answer for 0 s" in raised.value.message or "the connection broke" in raised.value.message


def test_a_server_that_went_back_to_its_own_weights_is_stale_and_not_believed(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    with rollout(model, tmp_path, server.url, look_interval_s=60.0) as backend:
        backend.load_weights(weights(), 1)
        server.label = "default"
        (group,) = generate(backend, [request()])
        assert len(server.prompts) == 2  # the first answer was thrown away
    assert group.completions[0].policy_version == 1


def test_two_runs_that_bring_their_weights_to_one_server_are_told(server: StandIn, model: Path, tmp_path: Path) -> None:
    answer = server.answer

    def theirs(path: str, body: dict[str, object]) -> tuple[int, object]:
        if path == GENERATE:
            server.label = "grpo-9-someone"
        return answer(path, body)

    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 1)
        server.answer = theirs  # type: ignore[method-assign]
        with pytest.raises(RolloutError) as raised:
            list(generate(backend, [request()]))
    assert "sample 'train-1': 5 attempts to have it answered failed" in raised.value.message
    assert "it has the weights grpo-9-someone" in raised.value.message
    assert "give each run its own" in str(raised.value.hint)


def test_a_completion_that_was_given_up_is_asked_for_again(server: StandIn, model: Path, tmp_path: Path) -> None:
    answers = iter(["abort", "length"])
    answer = server.answer

    def aborting_once(path: str, body: dict[str, object]) -> tuple[int, object]:
        if path == GENERATE:
            server.finish_reason = next(answers)
        return answer(path, body)

    server.answer = aborting_once  # type: ignore[method-assign]
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
        assert len(list(generate(backend, [request()]))) == 1


def test_weights_that_did_not_arrive_whole_stop_the_run(server: StandIn, model: Path, tmp_path: Path) -> None:
    def spoil(_: StandIn) -> None:
        from safetensors.torch import save_file

        (file,) = (tmp_path / "weights").glob("*/v0/weights-*.safetensors")
        save_file(dict(weights(7.0)), file)

    server.before["grpo_load"] = spoil
    with (
        rollout(model, tmp_path, server.url) as backend,
        pytest.raises(RolloutError, match="did not get the weights that were sent: 2 tensors arrived") as raised,
    ):
        backend.load_weights(weights(), 0)
    assert "is the disk full" in str(raised.value.hint)


def refused(model: Path, folder: Path, server: StandIn, **options: Any) -> RolloutError:
    with pytest.raises(RolloutError) as raised, rollout(model, folder, server.url, **options):
        pass
    return raised.value


def test_another_model_is_refused_before_anything_is_sent(model: Path, tmp_path: Path) -> None:
    with StandIn(model={**MODEL, "hidden_size": 64, "num_hidden_layers": 4}) as server:
        error = refused(model, tmp_path, server)
    assert f"{server.url} has another model than this run: hidden_size 64, not 32, num_hidden_layers 4, not 2" in str(
        error
    )
    assert "grpo_load" not in server.asked


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"vllm": "0.31.1"}, "runs vLLM 0.31.1, and this plugin needs 0.32 or newer\n  pip install 'vllm>=0.32'"),
        ({"protocol": 1}, "runs another grpo-rollout-vllm than this run\n  install the same version"),
        (
            {"cuts_prompts": True},
            "cuts long prompts in two, and on a CPU vLLM dies of that",
        ),
        ({"logprobs": "processed_logits"}, "reports processed_logits, which the trainer cannot compare with its own"),
    ],
)
def test_a_server_that_is_none_for_this_plugin_is_refused(
    about: dict[str, object], message: str, model: Path, tmp_path: Path
) -> None:
    with StandIn(**about) as server:
        assert message in str(refused(model, tmp_path, server))


@pytest.mark.parametrize("missing", ["/collective_rpc", "grpo_about", "/weight_info"])
def test_a_server_without_weight_transfer_is_told_how_to_be_started(
    missing: str, server: StandIn, model: Path, tmp_path: Path
) -> None:
    server.missing.add(missing)
    error = refused(model, tmp_path, server)
    assert "it cannot take a run's weights over\n  start it by `grpoctl rollout`" in str(error)
    assert "--worker-extension-cls grpo_rollout_vllm.worker.Extension" in str(error.hint)


def test_a_context_that_is_too_short_is_an_error_and_not_a_shorter_completion(model: Path, tmp_path: Path) -> None:
    with StandIn(context_tokens=8) as server, rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
        with pytest.raises(RolloutError) as raised:
            backend.generate([request(1, max_tokens=3), request(2, max_tokens=4)])
        assert len(list(backend.generate([request(1, max_tokens=3)]))) == 1
    assert (
        "sample 'train-2': a prompt of 5 tokens and a completion of up to 4 do not fit into the 8 tokens of the vLLM "
        f"server {server.url}" in str(raised.value)
    )
    assert "--max-model-len" in str(raised.value.hint)


def test_what_a_server_refuses_is_said_in_its_words(server: StandIn, model: Path, tmp_path: Path) -> None:
    server.vocab_size = 100
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
        with pytest.raises(RolloutError, match="refuses a prompt: Token id is out of vocabulary"):
            list(backend.generate([request(1, prompt_ids=(*PROMPT, 200))]))


def test_a_token_without_a_probability_stops_the_run(server: StandIn, model: Path, tmp_path: Path) -> None:
    server.logprob = -9999.0
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
        with pytest.raises(RolloutError, match="gives a token that it drew the probability 0, or none"):
            list(backend.generate([request()]))


def test_a_folder_that_the_server_does_not_see_is_an_error_where_it_must(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    server.answer = _blind(server)  # type: ignore[method-assign]
    with (
        rollout(model, tmp_path, server.url, transfer="folder") as backend,
        pytest.raises(RolloutError, match="does not see the folder"),
    ):
        backend.load_weights(weights(), 0)
    with rollout(model, tmp_path, server.url) as backend:
        backend.load_weights(weights(), 0)
    assert "grpo_receive" in server.asked


def _blind(server: StandIn):  # type: ignore[no-untyped-def]
    answer = server.answer

    def blind(path: str, body: dict[str, object]) -> tuple[int, object]:
        if body.get("method") == "grpo_sees":
            return 200, {"results": [{"sees": False}]}
        return answer(path, body)

    return blind


def test_a_key_that_is_not_in_the_environment_is_named(model: Path, tmp_path: Path, server: StandIn) -> None:
    error = refused(model, tmp_path, server, api_key_variable="NO_SUCH_KEY")
    assert "the environment has no NO_SUCH_KEY" in str(error)
