from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grpo_core.errors import GrpoError, PluginError, RolloutError, TrainerError
from grpo_core.loop.checked import checked_rollout, checked_trainer
from grpo_core.recipe.plan import PlannedComponent
from grpo_core.types import (
    Completion,
    FinishReason,
    RolloutGroup,
    RolloutRequest,
    Sample,
    SamplingParams,
    TokenStats,
    TrainBatch,
    TrainGroup,
    TrainMember,
    UpdateReport,
)

COMPLETION = Completion(text="a", token_ids=(5, 2), sampling_logprobs=(-0.1, -1), finish_reason=FinishReason.STOP)


def planned(*capabilities: str) -> PlannedComponent:
    return PlannedComponent(name="grpo-acme/acme", target="acme:make", capabilities=capabilities)


def request(name: str = "train-0", n: int = 1) -> RolloutRequest:
    params = SamplingParams(max_tokens=4)
    return RolloutRequest(
        sample=Sample(messages=(), id=name), prompt_text="", prompt_ids=(1,), n=n, params=params, seed=1
    )


class Rollout:
    """Gives what it was told to, whatever that is."""

    takes_adapter = True

    def __init__(self, *groups: object) -> None:
        self.groups = groups

    def generate(self, requests: Sequence[RolloutRequest]) -> Iterator[Any]:
        yield from self.groups

    def load_weights(self, stream: object, version: int) -> None: ...

    def close(self) -> None: ...


class Trainer:
    def __init__(self, stats: object = None, report: object = None) -> None:
        self.stats, self.report = stats, report

    def logprobs(self, batch: TrainBatch, of: str) -> Any:
        return self.stats

    def update(self, batch: TrainBatch) -> Any:
        return self.report

    def save(self, directory: object) -> None: ...

    def restore(self, directory: object) -> None: ...

    def export(self, directory: object) -> None: ...

    def close(self) -> None: ...


def drawn(*groups: object, asked: Sequence[RolloutRequest]) -> list[RolloutGroup]:
    return list(checked_rollout(Rollout(*groups), planned()).generate(asked))


def test_groups_that_keep_the_contract_pass_as_they_are_in_any_order() -> None:
    one, other = request("a"), request("b", n=2)
    groups = [
        RolloutGroup(request=other, completions=(COMPLETION, COMPLETION)),
        RolloutGroup(request=one, completions=(COMPLETION,)),
    ]
    assert drawn(*groups, asked=[one, other]) == groups


@pytest.mark.parametrize(
    ("completion", "fault"),
    [
        ({"text": "a"}, "completion 0 is {'text': 'a'}, not a Completion"),
        ({"token_ids": [5, 2]}, "completion 0 has [5, 2] as token_ids, not a tuple of int"),
        ({"token_ids": (5.0, 2.0)}, "completion 0 has 5.0 among its token_ids, not only int; write int(…) of each"),
        ({"token_ids": ("a", "b")}, "completion 0 has 'a' among its token_ids, not only int"),
        ({"sampling_logprobs": (-0.1,)}, "completion 0 has 2 tokens but 1 log-probabilities"),
        ({"sampling_logprobs": None}, "completion 0 has None as sampling_logprobs, not a tuple of float"),
        ({"sampling_logprobs": (None, -1.0)}, "completion 0 has None among its sampling_logprobs, not only float"),
        ({"token_ids": (), "sampling_logprobs": ()}, "completion 0 has no token, not even an end token"),
        ({"text": None}, "completion 0 has None as text, not a str"),
        ({"finish_reason": "stop"}, "completion 0 has 'stop' as finish_reason, not a FinishReason"),
    ],
)
def test_a_completion_that_is_none_names_plugin_component_sample_and_fault(
    completion: dict[str, Any], fault: str
) -> None:
    asked = request()
    is_dict = list(completion) == ["text"] and completion["text"] == "a"
    given = completion if is_dict else replace(COMPLETION, **completion)
    with pytest.raises(RolloutError) as caught:
        drawn(RolloutGroup(request=asked, completions=cast(Any, (given,))), asked=[asked])
    assert caught.value.message.startswith(f"the rollout backend 'grpo-acme/acme': sample 'train-0': {fault}")


def test_groups_that_are_none_or_of_nobody_or_too_few_are_told() -> None:
    asked, other = request("a", n=2), request("b")
    group = RolloutGroup(request=asked, completions=(COMPLETION, COMPLETION))
    for groups, fault in (
        ([{"completions": []}], "the rollout backend 'grpo-acme/acme' gave {'completions': []}, not a RolloutGroup"),
        ([replace(group, request=replace(asked))], "answered for sample 'a', which was not asked for"),
        ([group, group], "answered for sample 'a', which was not asked for, or a second time"),
        ([group], "'grpo-acme/acme' ended without an answer for 1 prompts: 'b'"),
        ([replace(group, completions=(COMPLETION,))], "sample 'a': asked for 2 completions, got 1"),
        ([replace(group, completions=[COMPLETION] * 2)], "its completions are a list, not a tuple of Completion"),
        ([replace(group, logprob_space="log2")], "its logprob_space is 'log2', not one of raw, tempered, processed"),
    ):
        with pytest.raises(RolloutError) as caught:
            drawn(*cast(list[Any], groups), asked=[asked, other])
        assert fault in caught.value.message


def test_a_generate_that_forgets_to_give_anything_is_told() -> None:
    backend = Rollout()
    backend.generate = lambda requests: None  # type: ignore[assignment,method-assign,return-value]
    with pytest.raises(RolloutError, match="'grpo-acme/acme': generate gave None, not groups"):
        list(checked_rollout(backend, planned()).generate([request()]))


def test_what_a_backend_can_do_beside_its_protocol_is_still_there() -> None:
    rollout = checked_rollout(Rollout(), planned())
    assert getattr(rollout, "takes_adapter", False)
    assert getattr(rollout, "rest", None) is None


@pytest.mark.parametrize(
    ("built", "capabilities", "faults"),
    [
        (None, (), "gave a NoneType: it has no method generate(requests); it has no method close()"),
        (Rollout, (), "gave a class, not an object of it: its generate"),
        (
            SimpleNamespace(generate=print, close=print),
            ("weights:stream", "weights:shared"),
            "it has no method load_weights(stream, version), which its capability weights:stream needs; "
            "it has no method share(module, version), which its capability weights:shared needs",
        ),
        (
            SimpleNamespace(generate=lambda: None, close=print),
            (),
            "its generate() cannot be called as generate(requests): too many positional arguments",
        ),
    ],
)
def test_a_backend_without_its_methods_is_refused_where_it_is_built(
    built: object, capabilities: tuple[str, ...], faults: str
) -> None:
    with pytest.raises(PluginError) as caught:
        checked_rollout(built, planned(*capabilities))
    assert caught.value.message.startswith("the factory of the rollout backend 'grpo-acme/acme' gave ")
    assert faults in caught.value.message


def test_a_trainer_needs_the_way_of_its_weights_and_all_else() -> None:
    checked_trainer(Trainer(), planned())
    with pytest.raises(PluginError, match=r"no method iter_weights\(\), which its capability weights:stream needs"):
        checked_trainer(Trainer(), planned("weights:stream"))
    with pytest.raises(PluginError, match=r"trainer backend 'grpo-acme/acme' gave a SimpleNamespace: .*logprobs\(bat"):
        checked_trainer(SimpleNamespace(), planned())


MEMBER = TrainMember(token_ids=(5, 2), advantage=1.0, sampling_logprobs=(-0.1, -1.0))
BATCH = TrainBatch(
    groups=(TrainGroup(prompt_ids=(1,), members=(MEMBER, MEMBER)),),
    step=1,
    temperature=1.0,
    logprob_space="tempered",
    sequences=2,
    tokens=4,
    max_completion_tokens=4,
)
STATS = TokenStats(logprobs=(((-0.1, -1.0), (-0.1, -1.0)),), space_logprobs=None, entropies=(((0.0, 0.0), (0.0, 0.0)),))


def test_numbers_of_every_token_pass() -> None:
    trainer = checked_trainer(Trainer(STATS, UpdateReport(metrics={"loss": 1.0})), planned())
    assert trainer.logprobs(BATCH, "policy") is STATS
    assert trainer.update(BATCH).metrics == {"loss": 1.0}


@pytest.mark.parametrize(
    ("stats", "fault"),
    [
        ({"logprobs": []}, "logprobs gave {'logprobs': []}, not TokenStats"),
        (replace(STATS, logprobs=()), "logprobs gave logprobs for 0 groups of 1"),
        (
            replace(STATS, entropies=(((0.0,), (0.0, 0.0)),)),
            "entropies for [1, 2] tokens in the members of group 0, which have [2, 2]",
        ),
        (replace(STATS, space_logprobs=cast(Any, 3)), "space_logprobs of 3, not [groups][members][T] of float"),
    ],
)
def test_numbers_that_do_not_fit_the_batch_name_plugin_and_place(stats: object, fault: str) -> None:
    with pytest.raises(TrainerError) as caught:
        checked_trainer(Trainer(stats), planned()).logprobs(BATCH, "policy")
    assert caught.value.message.startswith("the trainer backend 'grpo-acme/acme': ")
    assert fault in caught.value.message


@pytest.mark.parametrize(
    ("report", "fault"),
    [
        ({"loss": 1.0}, "update gave {'loss': 1.0}, not an UpdateReport"),
        (None, "update gave None, not an UpdateReport"),
        (UpdateReport(metrics=cast(Any, [])), "update gave [] as metrics, not a mapping"),
        (UpdateReport(metrics=cast(Any, {"loss": "low"})), "update gave 'low' as the metric 'loss', not a float"),
    ],
)
def test_an_update_that_reports_nothing_readable_is_told(report: object, fault: str) -> None:
    with pytest.raises(GrpoError) as caught:
        checked_trainer(Trainer(report=report), planned()).update(BATCH)
    assert f"the trainer backend 'grpo-acme/acme': {fault}" in caught.value.message
